"""How episodes are sampled: many at once, in units whose numbers depend on nothing else."""
