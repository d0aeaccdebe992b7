"""Small tasks written straight against the Environment protocol: to learn in seconds or minutes."""
