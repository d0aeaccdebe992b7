"""What `import rl_tui` offers to Python programs."""
