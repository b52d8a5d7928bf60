"""Servers with a common queue (section 4.2), whose values are their own or one for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.accrual.play import Rule
from cluster_env.worlds.accrual.pool import AccrualPool
from cluster_env.worlds.accrual.td import Learners
from cluster_env.worlds.accrual.values import first_parameters
from rllib_configs.worlds.accrual.servers import Setting

POOL_POLICIES = ("none", "aggressive", "own", "shared")
"""What decides on each machine: nothing, the smallest job, values of its own, values of all."""


@dataclass(frozen=True, kw_only=True)
class PoolSetting:
    """What is measured.

    Attributes:
        machines: with one queue.
        allocation: see `cluster_env.worlds.accrual.pool.ALLOCATIONS`.
        each: one machine and its share of the arrivals: ``rate`` jobs a step and machine.
    """

    machines: int = 2
    allocation: str = "machine"
    each: Setting = field(default_factory=Setting)

    def loaded(self, split: Split, steps: int) -> AccrualPool:
        """A pool of all experiments, for so long."""
        each = self.each
        pool = AccrualPool(replace(each.world, max_time=steps), self.machines, self.allocation)
        workload = replace(each.workload(steps), rate=self.machines * each.rate)
        pool.load(sample_jobsets(workload, each.seed, split, range(each.experiments)))
        return pool


@dataclass(frozen=True)
class PoolOutcome:
    """What a policy reached.

    Attributes:
        policy: one of `POOL_POLICIES`.
        productivity: float64 ``(experiments,)``, utility of all jobs that finished in time.
    """

    policy: str
    productivity: NDArray[np.float64]


def learn_in_pool(setting: PoolSetting, *, shared: bool) -> Learners:
    """Lets all machines learn side by side for the setting's steps of learning.

    Args:
        setting: what is measured.
        shared: whether the machines of a pool tune one value function together. Each still has an
            average reward and learning rates of its own.
    """
    each = setting.each
    functions = each.experiments * (1 if shared else setting.machines)
    first = first_parameters(each.learning.kind, functions, generator(each.seed, Purpose.INIT))
    learners = each.learning.begin(first, sharing=setting.machines if shared else 1)
    pool = setting.loaded(Split.TRAIN, each.learning.steps)
    pool.play(Rule("best_fit", "value"), learners=learners, learning=True)
    return learners


def pool_experiment(
    setting: PoolSetting, policies: Sequence[str] = POOL_POLICIES
) -> Iterator[PoolOutcome]:
    """Measures policies on the same arrivals, those that learn after they have."""
    pool = setting.loaded(Split.HELD_OUT, setting.each.steps)
    for policy in policies:
        learns = policy in ("own", "shared")
        learners = learn_in_pool(setting, shared=policy == "shared") if learns else None
        pool.play(Rule("best_fit", "value" if learns else policy), learners=learners)
        yield PoolOutcome(policy, pool.earned.sum(axis=1))
