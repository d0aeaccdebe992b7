"""Collectors in the worker processes of environments: policies act there, and blocks of experience come back."""
