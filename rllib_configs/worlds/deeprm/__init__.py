"""What DeepRM's world adds: its own network, ranges of tasks."""
