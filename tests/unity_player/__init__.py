"""A stand-in for players that Unity builds: speaks their side of the protocol, and makes trouble on demand."""
