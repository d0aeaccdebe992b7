"""The process and its terminal: keys, signals, streams, and this program's own command."""
