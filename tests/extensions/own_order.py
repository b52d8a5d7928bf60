"""Orders of one's own: short jobs first, with some patience for wide ones, or for who has waited.

Known to every command with METASCHED_IMPORTS=own_order in the environment:
metasched compare --config hpc-smoke --policies flat,flat:strict,aging,sjf
"""

import numpy as np

from cluster_env.worlds.hpc.rules import moving_order, order


@order("flat")
def _flat(estimate, size, submit):
    return estimate / np.sqrt(size)


@moving_order("aging")  # compiled, so no objects of Python
def _aging(waited, estimate, size):
    return estimate * size / (3600.0 + waited)
