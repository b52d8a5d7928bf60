"""Learning across tasks: policies that adapt to a new workload, cluster or objective.

Algorithms that learn within one task are in ``rllib_configs``; see README.md of this package.
"""
