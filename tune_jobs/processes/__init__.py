"""Processes that work for commands: of this machine, of a Ray of its own, or of a cluster."""
