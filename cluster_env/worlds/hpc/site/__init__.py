"""A site as it is: nodes in partitions, limits, a calendar, and a simulator of these."""
