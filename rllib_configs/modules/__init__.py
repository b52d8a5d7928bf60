"""Policies as RLModules."""
