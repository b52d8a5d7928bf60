"""What the world of unlike nodes adds: an environment for RLlib's own algorithms."""
