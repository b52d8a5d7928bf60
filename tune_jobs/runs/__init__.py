"""Training runs: their folders, and what keeps them going."""
