"""Whole job logs: what stands in them, and what policies would have done with them."""
