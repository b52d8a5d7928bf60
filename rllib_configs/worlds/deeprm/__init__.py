"""What DeepRM's world adds: its own network, a fast path of the set scorer, ranges of tasks."""
