"""Policies as networks, chosen by name. Only what RLlib trains them with needs Ray."""
