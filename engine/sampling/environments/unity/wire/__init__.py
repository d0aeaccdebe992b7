"""The bytes inside Unity's messages, as numpy columns and values."""
