"""What a site says of itself: nodes, partitions, limits, a calendar, and readers of its files."""
