"""Players built with Unity, and the Editor: ML-Agents' protocol, and the processes that speak it."""
