"""Run times as something to learn: distributions of what jobs take of what their users ask for."""
