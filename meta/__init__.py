"""Learning across tasks: policies that adapt to a new workload, cluster or objective.

Still empty. Task distributions and meta-learning algorithms will stand here; algorithms that learn
within one task are in ``rllib_configs``.
"""
