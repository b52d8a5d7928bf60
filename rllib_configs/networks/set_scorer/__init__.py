"""A policy network whose size does not depend on the number of items that it scores."""
