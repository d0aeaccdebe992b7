"""Environments written for mlagents_envs: implementations of its BaseEnv, which need not be subclasses of it."""
