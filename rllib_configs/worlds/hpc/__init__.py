"""What the HPC world needs of its own: scorers of a few numbers, played by its simulator."""
