"""MAPPO: PPO with a critic that sees the whole group."""
