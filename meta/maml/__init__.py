"""MAML: parameters from which one gradient step on a task's own episodes goes far."""
