"""From YAML and command line to validated settings. No torch, no environment."""
