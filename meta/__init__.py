"""Learning across tasks: policies that adapt to a new workload, cluster or objective.

``meta.tasks`` says what tasks there are, ``meta.maml`` learns parameters from which adaptation goes
fast, ``meta.adaptation`` adapts them. Algorithms that learn within one task are in
``rllib_configs``.
"""
