"""The trainer engine: trains without knowing who watches."""
