"""How well policies adapt, as rows of tables."""
