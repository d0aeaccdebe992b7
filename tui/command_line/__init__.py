"""What the command line asks for, and the process around a screen or without one."""
