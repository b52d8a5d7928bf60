"""Worlds: what schedulers act in, each in a folder of its own."""
