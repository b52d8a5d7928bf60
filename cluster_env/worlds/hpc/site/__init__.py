"""A simulator of a site as it is: nodes in partitions, limits and a calendar."""
