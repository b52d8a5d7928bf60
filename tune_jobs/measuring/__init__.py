"""Policies on the same unseen jobsets, as rows of tables."""
