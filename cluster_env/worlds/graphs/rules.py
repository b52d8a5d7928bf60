"""Rules that a simulator plays by itself, and the linear scorer.

Each takes executors of the source as long as some are free: it names a stage and how many it gets.
Unless a rule says something else, jobs come in this order: that of the executors first, then the
others by arrival; and of a job the first stage that can begin, or else the first that can get
executors in advance.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_inlined
from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from cluster_env.worlds.graphs.events import can_take, is_open, job_of_pool, num_free
from cluster_env.worlds.graphs.rounds import most_of
from cluster_env.worlds.graphs.state import NOWHERE, Episode

RULES = ("fifo", "fair", "weighted_fair", "sjf_cp", "scorer")
_FIFO, _FAIR, _WEIGHTED, _SJF, _SCORER = range(len(RULES))

PRIORITY = ("log_left", "log_work", "log_age", "log_held", "own", "log_path", "ready")
"""What the scorer sees of a stage; the lowest sum of weights times these goes first.

* ``log_left``, ``log_work``: ln of the work of the job, of tasks that have not begun and of all, in
  executors x 100 s.
* ``log_age``: ln(1 + age of the job / 10 s).
* ``log_held``: ln(1 + executors of the job).
* ``own``: 1 if the executors are at the job.
* ``log_path``: ln of the longest path from the stage to the end of its job, in s.
* ``ready``: 1 if its parents have ended.
"""

SHARE = ("log_left", "log_work", "log_age", "constant")
"""What the scorer sees of a job to share executors out: it has at most
``ceil(executors x exp(constant) x share)``, with shares that are the softmax of the others. The job
of the executors may take them all."""

CONTEXT = ("constant", "log_size", "burst")
"""What weights may depend on: mean ln of the work of the last jobs, in executors x 400 s, which is
about 0 for generated graphs and for those of TPC-H, and how bursty they came
(`cluster_env.worlds.graphs.events.observe`)."""

NUM_WEIGHTS = len(PRIORITY) + len(SHARE)
_LN_WORK, _LN_PATH, _AGE = float(np.log(1e5)), float(np.log(1e3)), 1e4
_LN_SIZE = float(np.log(4e5))


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides.

    Attributes:
        name: one of `RULES`.
        weights: float64 ``(len(CONTEXT), NUM_WEIGHTS)`` of the scorer, those of `PRIORITY` first;
            of the weighted fair rule, the exponent.
    """

    name: str
    weights: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((len(CONTEXT), NUM_WEIGHTS))
    )

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise unknown("rule", self.name, RULES)
        shape = (len(CONTEXT), NUM_WEIGHTS)
        if self.weights.shape != shape or not np.isfinite(self.weights).all():
            raise InputError(f"a rule needs finite weights of shape {shape}")

    @property
    def number(self) -> int:
        """Of the rule, as compiled code has it."""
        return RULES.index(self.name)


@njit_inlined
def decide(episode: Episode, rule: int, weights: NDArray[np.float64]) -> tuple[int, int]:
    """The stage that gets executors next by a rule, and how many; no stage and 0 for none."""
    if rule == _SCORER:
        return best_by_score(episode, weights)
    if rule == _SJF:
        return shortest_job(episode)
    record, free = episode.record, num_free(episode)
    own = job_of_pool(episode, record.source)
    # The job of the executors keeps them.
    if own >= 0:
        target = usual_stage(episode, own, False)
        if target >= 0:
            return target, min(free, most_of(episode, target))
    total = 0.0
    if rule == _WEIGHTED:
        total = sum_of_powers(episode, weights[0, 0])
    for i in range(record.num_here):
        job = episode.here[i]
        if job == own or not is_open(episode, job):
            continue
        most = episode.options.executors
        if rule == _FAIR:
            most = -(-most // record.num_here)
        elif rule == _WEIGHTED:
            share = episode.jobs[job].work ** weights[0, 0] / total
            most = int(np.ceil(most * share))
        room = most - episode.progress[job].held
        if room > 0:
            target = usual_stage(episode, job, False)
            if target >= 0:
                return target, min(room, most_of(episode, target))
    return NOWHERE, 0


@njit_inlined
def sum_of_powers(episode: Episode, exponent: float) -> float:
    """What the work of all jobs that are here weighs."""
    total = 0.0
    for i in range(episode.record.num_here):
        total += episode.jobs[episode.here[i]].work ** exponent
    return total


@njit_inlined
def usual_stage(episode: Episode, job: int, by_path: bool) -> int:
    """The first stage of a job that can begin now, or else the first that can get executors.

    By path, the one with the longest path in place of the first.
    """
    progress, width, best, longest = episode.progress[job], episode.options.width, NOWHERE, 0.0
    if progress.wanting & ~progress.chosen == 0:
        return NOWHERE
    best_ready = False
    for stage in range(episode.jobs[job].num_stages):
        if can_take(episode, job, stage):
            target = job * width + stage
            fixed = episode.stages[target]
            path = fixed.path if by_path else 0.0
            ready = fixed.parents & progress.unfinished == 0
            if best < 0 or ready > best_ready or (ready == best_ready and path > longest):
                best, longest, best_ready = target, path, ready
    return best


@njit_inlined
def shortest_job(episode: Episode) -> tuple[int, int]:
    """The job of the least work takes all that it can, for its longest path first."""
    record, least, best = episode.record, np.inf, NOWHERE
    own = job_of_pool(episode, record.source)
    for i in range(-1, record.num_here):
        job = own if i < 0 else episode.here[i]
        if job < 0 or (i >= 0 and job == own) or not is_open(episode, job):
            continue
        if episode.jobs[job].work < least:
            target = usual_stage(episode, job, True)
            if target >= 0:
                least, best = episode.jobs[job].work, target
    if best < 0:
        return NOWHERE, 0
    return best, most_of(episode, best)


@njit_inlined
def weight_of(episode: Episode, weights: NDArray[np.float64], k: int) -> float:
    """A weight of the scorer in the present context."""
    record = episode.record
    size = record.recent_log_work - _LN_SIZE
    return weights[0, k] + size * weights[1, k] + record.recent_burst * weights[2, k]


@njit_inlined
def best_by_score(episode: Episode, weights: NDArray[np.float64]) -> tuple[int, int]:
    """The stage of the lowest score, see `PRIORITY` and `SHARE`."""
    record, shares, free = episode.record, episode.shares, num_free(episode)
    own = job_of_pool(episode, record.source)
    w = (
        weight_of(episode, weights, 0),
        weight_of(episode, weights, 1),
        weight_of(episode, weights, 2),
        weight_of(episode, weights, 3),
        weight_of(episode, weights, 4),
        weight_of(episode, weights, 5),
        weight_of(episode, weights, 6),
    )
    s = (
        weight_of(episode, weights, 7),
        weight_of(episode, weights, 8),
        weight_of(episode, weights, 9),
        weight_of(episode, weights, 10),
    )
    # Shares of all jobs: their largest exponent is 0, so that none overflows.
    top = -np.inf
    for i in range(record.num_here):
        job = episode.here[i]
        left = np.log(max(episode.progress[job].work_left, 1.0)) - _LN_WORK
        work = episode.jobs[job].log_work - _LN_WORK
        age = np.log(1.0 + (record.time - episode.jobs[job].arrival) / _AGE)
        share = s[0] * left + s[1] * work + s[2] * age
        # What the score needs again, because most of the time goes into logarithms.
        shares[i, 0], shares[i, 1], shares[i, 2] = share, left, age
        top = max(top, share)
    total = 0.0
    for i in range(record.num_here):
        shares[i, 0] = np.exp(shares[i, 0] - top)
        total += shares[i, 0]
    scale = episode.options.executors * np.exp(min(s[3], 20.0)) / total
    least, best, best_room = np.inf, NOWHERE, 0
    for i in range(record.num_here):
        job = episode.here[i]
        progress = episode.progress[job]
        room = free
        if job != own:
            most = min(np.ceil(scale * shares[i, 0]), float(episode.options.executors))
            room = int(most) - progress.held
        if room <= 0 or progress.wanting & ~progress.chosen == 0:
            continue
        score = w[0] * shares[i, 1] + w[1] * (episode.jobs[job].log_work - _LN_WORK)
        score += w[2] * shares[i, 2]
        score += w[3] * np.log(1.0 + progress.held) + w[4] * (job == own)
        for stage in range(episode.jobs[job].num_stages):
            if not can_take(episode, job, stage):
                continue
            target = job * episode.options.width + stage
            fixed = episode.stages[target]
            of_stage = score + w[5] * (fixed.log_path - _LN_PATH)
            of_stage += w[6] * (fixed.parents & progress.unfinished == 0)
            if of_stage < least:
                least, best, best_room = of_stage, target, room
    if best < 0:
        return NOWHERE, 0
    return best, min(best_room, most_of(episode, best))
