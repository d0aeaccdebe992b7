"""Experience kept over many updates."""
