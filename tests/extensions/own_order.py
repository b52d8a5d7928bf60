"""An order of one's own: short jobs first, with some patience for wide ones.

Known to every command with METASCHED_IMPORTS=own_order in the environment:
metasched compare --config hpc-smoke --policies flat,flat:strict,sjf
"""

import numpy as np

from cluster_env.worlds.hpc.rules import order


@order("flat")
def _flat(estimate, size, submit):
    return estimate / np.sqrt(size)
