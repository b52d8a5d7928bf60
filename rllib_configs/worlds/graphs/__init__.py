"""What the world of task graphs adds: a scorer of stages, which a search trains."""
