"""Actions compared by playing on: rollouts of a policy through the same sampled futures.

At a decision, some actions are taken one by one, and a policy plays on after each of them
(Bertsekas, Tsitsiklis and Wu 1997). First nothing arrives any more: this future has no chance in it
and is short. Only actions that are better there are played in sampled futures, few of them. What
arrives there is sampled from the task's own workload, and the same for all actions, so that their
costs differ by the action alone. The jobs that really come are hidden. All that have arrived are
known, also those that a state does not show, such as the jobs in DeepRM's backlog.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import (
    NOT_ALLOWED,
    Policy,
    ScoringPolicy,
    ViewingPolicy,
    choose,
    chooser,
)
from cluster_env.core.seeding import Purpose, episode_keys, generator, uniforms
from cluster_env.core.spec import Futures
from cluster_env.core.world import Simulator
from cluster_env.task import Task

_FUTURES = 1001
"""First key of the random numbers that policies play on with; others use smaller ones."""

FIRST_SHARE = 0.25
"""Of the futures: an action that is not better on average in these is played in no other."""

_ROUNDING = 1e-9
"""Gains up to this are none: sums of floats in another order."""

_BITS = 1 << 53  # of a uniform number


@dataclass(frozen=True, eq=False)
class Compared:
    """Actions at a decision, by what came of them.

    Attributes:
        actions: int32 ``(num_actions,)``, the policy's own first.
        alone: float64 ``(num_actions,)``, return of each action where nothing arrives any more,
            less that of the policy's own.
        gains: float64 ``(num_actions, num_futures)``, the same in each future; NaN where it was not
            played.
    """

    actions: NDArray[np.int32]
    alone: NDArray[np.float64]
    gains: NDArray[np.float64]

    @cached_property
    def played(self) -> NDArray[np.bool_]:
        """Which actions were played in the futures, bool ``(num_actions,)``."""
        return ~np.isnan(self.gains[:, 0])

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """Mean gain of each action, float64 ``(num_actions,)``; 0 for the policy's own.

        It is `alone` for an action that was not played in the futures.
        """
        total = np.nansum(self.gains, axis=1) / np.maximum(self._times, 1)
        return np.where(self.played, total, self.alone)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """Standard errors of the mean gains, float64 ``(num_actions,)``; 0 for those not played."""
        squares = np.nansum((self.gains - self.mean[:, None]) ** 2, axis=1)
        return np.sqrt(squares / np.maximum(self._times - 1, 1) / np.maximum(self._times, 1))

    @property
    def _times(self) -> NDArray[np.int64]:
        return np.asarray((~np.isnan(self.gains)).sum(axis=1))

    def best(self, errors: float) -> int:
        """Place of the best action whose gain is above so many of its standard errors; 0 if none.

        Of equally good ones the first wins, that is, the one that the policy likes better.
        """
        proven = np.where(self.mean > errors * self.error, self.mean, 0.0)
        return int(proven.argmax())


@dataclass(frozen=True)
class Lookahead:
    """Compares actions of a task's world by sampled futures.

    Attributes:
        task: its workload says what may arrive, its objective what counts, its seed what is drawn.
        num_futures: at each decision, at least 2.
        num_others: how many actions are compared with the policy's own, at most.
        reach: how far futures reach, in the world's own unit; 0: as far as is usual there. Behind
            that nothing arrives, and all jobs are played to their ends.

    Raises:
        InputError: if futures cannot be sampled in the world, or a number is too small.
    """

    task: Task
    num_futures: int
    num_others: int = 3
    reach: int = 0
    _simulators: list[Simulator] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.num_futures < 2:
            raise InputError(
                f"rollouts need at least 2 futures, to tell a gain from chance, but "
                f"{self.num_futures} was given"
            )
        _ = self.futures

    @cached_property
    def futures(self) -> Futures:
        """How later jobs are sampled in the world."""
        futures = self.task.spec.tools.futures
        if futures is None or not hasattr(self.task.workload, "after"):
            raise InputError(
                f"rollouts need sampled futures, which the jobs of this task in the world "
                f"{self.task.world.kind} do not have"
            )
        return futures

    def compare(
        self,
        policy: Policy,
        simulator: Any,
        rows: Sequence[int],
        actions: Sequence[NDArray[np.int32]],
        keys: Sequence[int],
    ) -> list[Compared]:
        """What comes of some actions in each of some rows under way, which stay as they are.

        Args:
            policy: plays on after each action.
            simulator: of the world, with the task's objective.
            rows: of the simulator.
            actions: of each row int32 ``(num_actions,)``, the policy's own first.
            keys: of each decision, at least 0. Futures depend on it, their numbers and the task's
                seed alone.
        """
        if simulator.objective != self.task.objective:
            raise InputError(
                f"rollouts for the objective {self.task.objective.name} need a simulator with the "
                f"same objective, not {simulator.objective.name}"
            )
        alone = self._alone(policy, simulator, rows, actions, keys)
        compared = []
        for place, row in enumerate(rows):
            better = alone[place] > _ROUNDING
            gains = self._in_futures(policy, simulator, better, row, actions[place], keys[place])
            compared.append(Compared(actions[place], alone[place], gains))
        return compared

    def _in_futures(
        self,
        policy: Policy,
        simulator: Any,
        better: NDArray[np.bool_],
        row: int,
        actions: NDArray[np.int32],
        key: int,
    ) -> NDArray[np.float64]:
        """Gains of those actions of a row that may be better; see `Compared`."""
        count, keys = self.num_futures, self._policy_keys(key)
        gains = np.full((actions.size, count), np.nan)
        # Many gains are small and chance, which a few futures show.
        first = max(2, math.ceil(FIRST_SHARE * count))
        left = better.copy()
        for numbers in (range(first), range(first, count)):
            if not left.any() or not numbers:
                break
            left[0] = True
            part = slice(numbers.start, numbers.stop)
            futures = self.sample(simulator, row, key, numbers)
            played = (np.full(len(futures), row), keys[part], [actions[left]] * len(futures))
            gains[left, part] = self._gains(policy, simulator, futures, *played).T
            left[1:] &= np.nansum(gains[1:], axis=1) > 0
            left[0] = False
        return gains

    def _alone(
        self,
        policy: Policy,
        simulator: Any,
        rows: Sequence[int],
        actions: Sequence[NDArray[np.int32]],
        keys: Sequence[int],
    ) -> list[NDArray[np.float64]]:
        """Gains of actions where nothing arrives any more, of all rows side by side."""
        if not rows:
            return []
        most = max(one.size for one in actions)
        # As many actions in each row: the policy's own once more, whose gain is 0.
        filled = [np.append(one, np.full(most - one.size, one[0], np.int32)) for one in actions]
        windows = [int(simulator.time[row]) + 1 for row in rows]
        arrived = [self._arrived(simulator, *each) for each in zip(rows, windows, strict=True)]
        policy_keys = np.array([self._policy_keys(key)[0] for key in keys])
        gains = self._gains(policy, simulator, arrived, np.asarray(rows), policy_keys, filled)
        return [gain[: one.size] for gain, one in zip(gains, actions, strict=True)]

    def _policy_keys(self, key: int) -> NDArray[np.uint64]:
        """Of the random numbers that a policy plays on with after a decision, one a future."""
        return episode_keys(self.task.seed, _FUTURES, key, count=self.num_futures)

    def _gains(
        self,
        policy: Policy,
        simulator: Any,
        jobsets: Sequence[JobSet],
        rows: NDArray[np.int64],
        keys: NDArray[np.uint64],
        actions: Sequence[NDArray[np.int32]],
    ) -> NDArray[np.float64]:
        """Gains over the first action of each jobset, ``(num_jobsets, num_actions)``.

        All are played side by side: each jobset from the state of a row on, with random numbers of
        a key and each of as many actions.
        """
        size, own = actions[0].size, self._simulator(simulator.world)
        own.load(jobsets, self.task.objective, size)
        targets = np.arange(len(jobsets) * size, dtype=np.int32)
        own.take_over(simulator, np.repeat(rows, size).astype(np.int32), targets)
        # The same random numbers in one future, whatever the action is.
        returns = _play_on(policy, own, np.concatenate(actions), np.repeat(keys, size))
        by_jobset = returns.reshape(-1, size)
        return np.asarray(by_jobset - by_jobset[:, :1])

    def sample(self, simulator: Any, row: int, key: int, numbers: Sequence[int]) -> list[JobSet]:
        """Futures of some numbers: the jobs that have arrived in a row, and later ones.

        See `compare` for the arguments.
        """
        arrived = self._arrived(simulator, row)
        source = self.futures.workload(self.task.workload, self.reach or self.futures.reach)
        drawn = (
            source.sample(generator(self.task.seed, Purpose.FUTURE, key, number))
            for number in numbers
        )
        futures = [_continued(arrived, later, int(simulator.time[row]) + 1) for later in drawn]
        for name in arrived.attributes:
            if any(name not in future.attributes for future in futures):
                raise InputError(
                    f"rollouts sample later jobs, but these lack the attribute '{name}' of the "
                    f"jobs that have arrived"
                )
        return futures

    def _arrived(self, simulator: Any, row: int, window: int | None = None) -> JobSet:
        """The jobs that have arrived in a row, by default in the window of all."""
        jobset: JobSet = simulator.batch.jobsets[simulator.batch.jobset[row]]
        self.futures.check(jobset)
        return jobset.select(slice(int(self.futures.arrived(simulator)[row])), window=window)

    def _simulator(self, world: Any) -> Any:
        # Made once: a simulator of a large world takes its time.
        if not self._simulators or self._simulators[0].world != world:
            self._simulators[:] = [world.simulator()]
        return self._simulators[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_simulators": []}


@dataclass(frozen=True)
class RolloutPolicy:
    """A policy that takes another action than its base where that is better by rollouts.

    Attributes:
        name: what tables call it.
        base: plays on after each action; see `candidates` for what is compared.
        lookahead: compares the actions.
        errors: standard errors by which another action has to be better.
    """

    name: str
    base: Policy
    lookahead: Lookahead
    errors: float = 2.0

    @property
    def objective(self) -> Any:
        """What simulators have to reward, see `cluster_env.evaluation.evaluate`."""
        return self.lookahead.task.objective

    def view(self, world: Any) -> Any:
        """See `cluster_env.core.policy.ViewingPolicy`: as the base sees a world."""
        return self.base.view(world) if isinstance(self.base, ViewingPolicy) else world

    def act(self, states: NDArray[Any], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """Refuses, as rules do that decide by more than a state shows.

        Raises:
            InputError: always.
        """
        raise InputError(f"{self.name} asks a simulator, and cannot act on states alone")

    def choose(
        self, simulator: Any, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.ChoosingPolicy`."""
        own = choose(self.base, simulator, rows, uniforms)
        most = 1 + self.lookahead.num_others
        chosen = own.copy()
        actions = candidates(self.base, simulator, rows, own, most)
        places = [place for place in range(rows.size) if actions[place].size > 1]
        compared = self.lookahead.compare(
            self.base,
            simulator,
            [int(rows[place]) for place in places],
            [actions[place] for place in places],
            [decision_key(uniforms[place]) for place in places],
        )
        for place, found in zip(places, compared, strict=True):
            chosen[place] = found.actions[found.best(self.errors)]
        return chosen


def decision_key(uniform: float) -> int:
    """A key of a decision from its own uniform number, which no other decision of a run has."""
    return int(uniform * _BITS)


def candidates(
    policy: Policy,
    simulator: Any,
    rows: NDArray[np.int32],
    own: NDArray[np.int32],
    most: int,
) -> list[NDArray[np.int32]]:
    """The actions that are worth a comparison in some rows, the policy's own ones first.

    Then come the next best by the policy's scores, or for a policy without any those of the items
    in their order. There are at most as many as asked for; one alone where there is no choice.
    """
    states, place = simulator.states[rows], np.arange(rows.size)
    if isinstance(policy, ScoringPolicy):
        scores = policy.scores(states)
    else:
        allowed = simulator.world.features(states).allowed
        scores = np.where(allowed, np.float32(0), NOT_ALLOWED)
    allowed = scores > NOT_ALLOWED / 2
    allowed[place, own] = True
    scores[place, own] = np.inf
    order = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)[:, :most]
    counts = np.minimum(allowed.sum(axis=1), most)
    return [ranked[:count] for ranked, count in zip(order, counts, strict=True)]


def _continued(arrived: JobSet, later: JobSet, begin: int) -> JobSet:
    """Jobs that have arrived, and others from an instant on."""
    count = later.num_jobs
    attributes = {}
    for name, column in arrived.attributes.items():
        if name in later.attributes:
            attributes[name] = np.concatenate([column, later.attributes[name]])
        elif name == "counted":  # a warm-up is over at some time
            attributes[name] = np.concatenate([column, np.ones(count, column.dtype)])

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(arrived, name), getattr(later, name)])

    return JobSet(
        np.concatenate([arrived.arrival, later.arrival + np.int32(begin)]),
        joined("duration"),
        joined("demand"),
        begin + later.window,
        joined("job_class"),
        attributes,
    )


def _play_on(
    policy: Policy, simulator: Any, actions: NDArray[np.int32], keys: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Takes an action in each row and lets a policy play to the ends; returns, float64 ``(n,)``."""
    rows = np.arange(actions.size, dtype=np.int32)
    returns, rewards = np.zeros(rows.size), np.empty(rows.size)
    decision, decide = 0, chooser(policy)
    while rows.size:
        left = simulator.step(rows, actions, rewards)
        returns[rows] += rewards[: rows.size]
        if left < rows.size:
            rows = rows[simulator.active[rows]]
        actions = decide(simulator, rows, uniforms(keys[rows], decision))
        decision += 1
    return returns
