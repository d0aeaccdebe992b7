"""The screen and the command line. Nothing in engine/ imports this."""
