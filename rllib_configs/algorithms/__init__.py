"""Algorithms that learn within one task."""
