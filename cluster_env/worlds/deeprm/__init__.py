"""DeepRM's cluster: a horizon of free capacity, decisions while time stands still.

After Mao et al., *Resource management with deep reinforcement learning* (HotNets 2016).
"""

from cluster_env.worlds.deeprm.spec import SPEC
from cluster_env.worlds.deeprm.world import DeepRM

__all__ = ["SPEC", "DeepRM"]
