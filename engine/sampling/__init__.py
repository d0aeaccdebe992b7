"""From environments to trajectories. No gradient here."""
