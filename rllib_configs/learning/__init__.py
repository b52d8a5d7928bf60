"""Advantages and losses as pure functions, without RLlib."""
