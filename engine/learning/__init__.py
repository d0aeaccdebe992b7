"""The algorithms. No threads, files, clocks or events here."""
