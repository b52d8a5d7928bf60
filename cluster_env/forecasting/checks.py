"""How far foreseen start times hold, measured on a log, and what is learned from that.

At sampled instants of a schedule the queue is played on from what was known then
(`cluster_env.forecasting.starts`), and each waiting job's start in the schedule is ranked among its
futures. Where intervals hold, ranks are uniform: 5 % of the jobs have ranks up to 0.05. Where they
do not, `Calibration` shows other levels in their place: those which so many of the earlier jobs of
the size class did not exceed (quantile recalibration, as in conformal prediction). The jobs of a
week wait for the same others, so that n weeks are n observations and not as many as jobs: as in
conformal prediction the next week counts as one more, half of it beyond each end.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy, ViewingPolicy
from cluster_env.evaluation.metrics import size_class_of
from cluster_env.forecasting.moments import PlayedJobs, moment_of
from cluster_env.forecasting.sequences import stretch_of
from cluster_env.forecasting.starts import (
    LEVELS,
    NUM_FUTURES,
    forecast,
    require_played,
)
from cluster_env.objectives import get_objective
from cluster_env.sites.placements import without_failures

FIRST_SHARE = 0.1
"""Of a log's time: before that too little is known."""

PRIOR = 1000
"""As how many uniform ranks what holds without any correction counts."""

_NUM_CLASSES = 3
_GRID = (np.arange(101) + 0.5) / 101


@dataclass(frozen=True, eq=False)
class Calibration:
    """Levels that are shown in place of `LEVELS`, by `size_class_of`.

    Attributes:
        levels: float64 ``(num_levels, num_classes)``.
    """

    levels: NDArray[np.float64]

    @classmethod
    def none(cls) -> "Calibration":
        """`LEVELS` themselves."""
        return cls(np.repeat(np.array(LEVELS)[:, None], _NUM_CLASSES, axis=1))

    @classmethod
    def of(
        cls, ranks: NDArray[np.float64], size: NDArray[np.int64], num_stretches: int
    ) -> "Calibration":
        """From earlier jobs.

        Args:
            ranks: float64 ``(num_jobs,)``.
            size: their size classes, int64 ``(num_jobs,)``.
            num_stretches: weeks, or days, that these come from, at least 1; see `stretch_of`.
        """
        levels = [_levels(ranks[size == which], num_stretches) for which in range(_NUM_CLASSES)]
        return cls(np.stack(levels, axis=1))


def _levels(ranks: NDArray[np.float64], num_stretches: int) -> NDArray[np.float64]:
    unseen = (ranks.size + PRIOR) / num_stretches / 2  # beyond each end, as weight
    values = np.concatenate([[0.0], ranks, _GRID, [1.0]])
    grid = np.full(_GRID.size, PRIOR / _GRID.size)
    weights = np.concatenate([[unseen], np.ones(ranks.size), grid, [unseen]])
    order = np.argsort(values, kind="stable")
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return np.interp(LEVELS, reached, values[order])


@dataclass(frozen=True, eq=False)
class Checked:
    """Jobs that waited at sampled instants: what was foreseen, and what happened.

    Seconds are after the instant. All are ``(num_rows,)`` but `shown`; a job stands in a row for
    each instant at which it waited.

    Attributes:
        share: of the log's time that had passed.
        job: its number.
        size: its `size_class_of`.
        actual: when it started.
        plan: when it should have by the users' estimates, see `Forecast.plan`.
        rank: of the start among the futures.
        shown: float64 ``(num_levels, num_rows)``, corrected by what was known at each instant.
        num_stretches: weeks of the log, or days of a short one.
    """

    share: NDArray[np.float64]
    job: NDArray[np.int64]
    size: NDArray[np.int64]
    actual: NDArray[np.int64]
    plan: NDArray[np.int64]
    rank: NDArray[np.float64]
    shown: NDArray[np.float64]
    num_stretches: int

    @property
    def calibration(self) -> Calibration:
        """What all of them teach."""
        return Calibration.of(self.rank, self.size, self.num_stretches)

    def select(self, rows: NDArray[np.bool_]) -> "Checked":
        """Some of the rows."""
        return Checked(
            self.share[rows],
            self.job[rows],
            self.size[rows],
            self.actual[rows],
            self.plan[rows],
            self.rank[rows],
            self.shown[:, rows],
            self.num_stretches,
        )


def check_starts(
    jobset: JobSet,
    world: Any,
    policy: Policy,
    *,
    num_instants: int,
    num_futures: int = NUM_FUTURES,
    seed: int = 0,
) -> Checked:
    """Foresees starts at instants of a policy's schedule, spread over its time.

    At each instant only what was known then is used: jobs that had been submitted, run times of
    those that had ended, and for the correction the ranks of those that had started. A site is
    taken without failures of its nodes, which nobody foresees.

    Args:
        jobset: all jobs of a log.
        world: an `HPC`.
        policy: a rule, or a scorer that orders jobs.
        num_instants: from `FIRST_SHARE` of the time on; those at which no job waits say nothing.
        num_futures: at each.
        seed: of the futures.

    Raises:
        InputError: if the policy cannot be played on (`forecast`), or jobs never start.
    """
    require_played(policy)
    if world.site is not None:
        world = replace(world, site=without_failures(world.site))
    if isinstance(policy, ViewingPolicy):
        world = policy.view(world)
    jobset, played = play_whole(jobset, world, policy)
    start = played.start
    classes = size_class_of(jobset.demand, np.asarray(world.capacity))
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    known_rank = np.empty(0)
    known_size, known_from = np.empty(0, np.int64), np.empty(0, np.int64)
    last = int(jobset.arrival[-1])
    for time in _instants(jobset, num_instants):
        moment, past = moment_of(jobset, played, time)
        made = forecast(moment, past, world, policy, num_futures=num_futures, rng=rng)
        waiting = np.asarray(moment.number)[moment.waiting]
        actual, size = start[waiting] - time, classes[waiting]
        # Ranks of jobs that have not started yet are not known yet.
        seen = known_from <= time
        known = Calibration.of(known_rank[seen], known_size[seen], _num_stretches(time))
        levels = known.levels[:, size]
        rank = made.ranks(actual)
        share = np.full(waiting.size, time / max(last, 1))
        rows.append((share, waiting, size, actual, made.plan, rank, made.quantiles(levels)))
        known_rank = np.concatenate([known_rank, rank])
        known_size = np.concatenate([known_size, size])
        known_from = np.concatenate([known_from, start[waiting]])
    names = ("share", "job", "size", "actual", "plan", "rank", "shown")
    columns: dict[str, Any] = {
        name: np.concatenate(column, axis=-1)
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return Checked(**columns, num_stretches=_num_stretches(last))


def play_whole(jobset: JobSet, world: Any, policy: Policy) -> tuple[JobSet, PlayedJobs]:
    """What becomes of all jobs of a jobset under a policy, from an empty machine on.

    The jobs come with what is believed of them in the world (`BELIEVED`).

    Raises:
        InputError: if the policy cannot be played, or a job never starts.
    """
    simulator = world.simulator()
    simulator.keeps_nodes = True
    simulator.load([jobset], get_objective("completion_time"))
    require_played(policy).play(simulator, np.zeros(1, np.uint64))
    start = simulator.starts.astype(np.int64)
    if (start < 0).any():
        raise InputError(
            f"under {policy.name} some jobs never start before max_time, so starts cannot be "
            f"checked; leave max_time unset"
        )
    finish = start + simulator.batch.column("duration", np.int64)
    if world.site is None:
        return simulator.believed(0), PlayedJobs(start, finish)
    eligible, nodes = simulator.rows.site.eligible.copy(), simulator.nodes_of_jobs()
    return simulator.believed(0), PlayedJobs(start, finish, eligible, nodes)


def _num_stretches(span: int) -> int:
    return max(span // stretch_of(span), 1)


def _instants(jobset: JobSet, num_instants: int) -> list[int]:
    """Arrivals, spread evenly over the time."""
    last = int(jobset.arrival[-1])
    place = (np.arange(num_instants) + 0.5) / num_instants
    grid = last * (FIRST_SHARE + (1 - FIRST_SHARE) * place)
    return [int(time) for time in np.unique(jobset.arrival[np.searchsorted(jobset.arrival, grid)])]
