"""What crosses between the engine and any front end. Standard library only."""
