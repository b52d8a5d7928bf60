"""What every step keeps, by the name of its world, for `check_cluster_env`."""

from tests.cluster_env.worlds.accrual import step_rule as accrual
from tests.cluster_env.worlds.deeprm import step_rule as deeprm
from tests.cluster_env.worlds.graphs import step_rule as graphs
from tests.cluster_env.worlds.hpc import step_rule as hpc

STEP_RULES = {
    "accrual": accrual.check_step,
    "deeprm": deeprm.check_step,
    "graphs": graphs.check_step,
    "hpc": hpc.check_step,
}
