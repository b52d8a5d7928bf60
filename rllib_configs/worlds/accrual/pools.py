"""Servers with a common queue (section 4.2), whose values are their own or one for all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.seeding import Split
from cluster_env.worlds.accrual.rules import Rule
from rllib_configs.worlds.accrual.servers import Setting, learn_values, loaded

POOL_POLICIES = ("none", "aggressive", "own", "shared")
"""What decides on each machine: nothing, the smallest job, values of its own, values of all."""


@dataclass(frozen=True, kw_only=True)
class PoolSetting:
    """What is measured.

    Attributes:
        machines: with one queue.
        allocation: see `Accrual.allocation`.
        each: one machine and its share of the arrivals: ``rate`` jobs a step and machine.
    """

    machines: int = 2
    allocation: str = "machine"
    each: Setting = field(default_factory=Setting)

    @property
    def whole(self) -> Setting:
        """All machines and all arrivals."""
        world = replace(self.each.world, machines=self.machines, allocation=self.allocation)
        return replace(self.each, world=world, rate=self.machines * self.each.rate)


@dataclass(frozen=True)
class PoolOutcome:
    """What a policy reached.

    Attributes:
        policy: one of `POOL_POLICIES`.
        productivity: float64 ``(experiments,)``, utility of all jobs that finished in time.
    """

    policy: str
    productivity: NDArray[np.float64]


def pool_experiment(
    setting: PoolSetting, policies: Sequence[str] = POOL_POLICIES
) -> Iterator[PoolOutcome]:
    """Measures policies on the same arrivals, those that learn after they have."""
    whole = setting.whole
    simulator = loaded(whole, Split.HELD_OUT, whole.steps)
    for policy in policies:
        learns = policy in ("own", "shared")
        learners = learn_values(whole, "both", shared=policy == "shared") if learns else None
        simulator.play(Rule("best_fit", "value" if learns else policy), learners=learners)
        yield PoolOutcome(policy, simulator.earned)
