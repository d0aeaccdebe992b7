"""Games between policies, whatever they are played for: an arena, or an evaluation."""
