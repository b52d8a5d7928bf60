"""A server with preemption and squeezing as a world: its options, and what a network sees."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.registry import unknown
from cluster_env.core.world import Features
from cluster_env.objectives.utility import time_utility_functions
from cluster_env.worlds.accrual.arrays import CANDIDATE, HEADER, Machine
from cluster_env.worlds.accrual.features import CONTEXT, ITEM, describe
from cluster_env.worlds.accrual.simulator import AccrualSimulator

GROWTH = ("arrival", "utility", "shortfall")
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Accrual:
    """One server whose jobs are worth less the later they finish (Vengerov, section 5).

    Time passes from instant to instant at which a job arrives or finishes, as section 4.1 says.
    What the paper leaves open is an option here.

    Attributes:
        processors: N.
        longest: MaxJobLength, the steps by which time is divided in the value function's x2.
        preempt: whether jobs may be preempted.
        squeeze: whether jobs may start on fewer processors than they ask for.
        candidates: waiting jobs that can be chosen from, those that would be worth most.
        growth: which squeezed job gets free processors first: by ``arrival``, ``utility`` (the
            highest unit utility at completion over the time until then) or ``shortfall`` (the
            fewest missing).
        grow_first: whether squeezed jobs get free processors before waiting jobs start.
        drop_expired: whether a waiting job is let go for good once it would be worth nothing even
            if it started; else it stays in the queue like any other.
        max_time: clock after which an episode is truncated.
    """

    kind: ClassVar[str] = "accrual"

    processors: int = 24
    longest: int = 10
    preempt: bool = True
    squeeze: bool = True
    candidates: int = 16
    growth: str = "utility"
    grow_first: bool = True
    drop_expired: bool = False
    max_time: int = LARGEST

    def __post_init__(self) -> None:
        for name, most in (
            ("processors", 65536),
            ("longest", LARGEST),
            ("candidates", 4096),
            ("max_time", LARGEST),
        ):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(
                    f"{name} must be 1 to {most:,}, but {getattr(self, name)} was given"
                )
        if self.growth not in GROWTH:
            raise unknown("order of growth", self.growth, GROWTH)

    @cached_property
    def machine(self) -> Machine:
        """The options as compiled code reads them."""
        return Machine(
            processors=self.processors,
            longest=self.longest,
            preempt=self.preempt,
            squeeze=self.squeeze,
            candidates=self.candidates,
            growth=GROWTH.index(self.growth),
            grow_first=self.grow_first,
            drop_expired=self.drop_expired,
            max_time=self.max_time,
        )

    @cached_property
    def state_space(self) -> spaces.Box:
        """Whole numbers, see `cluster_env.worlds.accrual.arrays`."""
        size = len(HEADER) + self.candidates * len(CANDIDATE)
        return spaces.Box(0, LARGEST, (size,), np.int32)

    @property
    def num_actions(self) -> int:
        """One for each candidate, and void."""
        return self.candidates + 1

    @property
    def feature_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See `cluster_env.worlds.accrual.features`."""
        return ITEM, CONTEXT

    def check(self, jobset: JobSet) -> None:
        """Makes sure that every job can run on the empty server, and has a utility.

        Raises:
            InputError: if one cannot, or has none.
        """
        if jobset.num_resources != 1:
            raise InputError(
                f"jobs of this server ask for processors alone, but they ask for "
                f"{jobset.num_resources} resources"
            )
        tuf = time_utility_functions(jobset)
        too_large = jobset.demand[:, 0] > self.processors
        if too_large.any():
            job = int(np.argmax(too_large))
            raise InputError(
                f"job {job} asks for {jobset.demand[job, 0]} processors, but the server has "
                f"{self.processors}"
            )
        if tuf.ndim != 2 or tuf.shape[1] < 3 or tuf.shape[1] % 2 == 0 or not np.isfinite(tuf).all():
            raise InputError(
                "the attribute 'tuf' needs a row of P times, P values and an exponent for each job"
            )

    def simulator(self) -> AccrualSimulator:
        """A new simulator, with nothing loaded."""
        return AccrualSimulator(self.machine, int(self.state_space.shape[0]), self.check)

    def features(self, states: NDArray[np.int32], out: Features | None = None) -> Features:
        """What a network sees: the states that the server could be in next.

        Args:
            states: int32 ``(n, state_size)``.
            out: written if given.
        """
        if out is None:
            n = states.shape[0]
            out = Features(
                np.empty((n, self.candidates, len(ITEM)), np.float32),
                np.empty((n, len(CONTEXT)), np.float32),
                np.empty((n, self.num_actions), np.bool_),
            )
        describe(states, self.processors, self.longest, *out)
        return out
