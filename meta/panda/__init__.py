"""What PANDA learns with: types by clustering, and a network that advises agents."""
