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
from cluster_env.worlds.graphs.events import can_take, job_in_turn, job_of_pool, num_free
from cluster_env.worlds.graphs.rounds import most_of
from cluster_env.worlds.graphs.state import NOWHERE, NUM_WEIGHTS, Episode

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
    record = episode.record
    own, total = job_of_pool(episode, record.source), 0.0
    if rule == _WEIGHTED:
        for i in range(record.num_here):
            total += episode.jobs[episode.here[i]].work ** weights[0, 0]
    least, best, best_room = np.inf, NOWHERE, 0
    for i in range(-1, record.num_here):
        job = job_in_turn(episode, own, i)
        if job < 0 or (rule == _SJF and episode.jobs[job].work >= least):
            continue
        # The job of the executors keeps them; others get more up to their share.
        most = episode.options.executors
        if rule == _FAIR:
            most = -(-most // record.num_here)
        elif rule == _WEIGHTED:
            share = episode.jobs[job].work ** weights[0, 0] / total
            most = int(np.ceil(most * share))
        room = num_free(episode)
        if job != own and rule != _SJF:
            room = most - episode.jobs[job].held
        target = usual_stage(episode, job, rule == _SJF) if room > 0 else NOWHERE
        if target >= 0:
            least, best, best_room = episode.jobs[job].work, target, room
            if rule != _SJF:
                break
    if best < 0:
        return NOWHERE, 0
    return best, min(best_room, most_of(episode, best))


@njit_inlined
def usual_stage(episode: Episode, job: int, by_path: bool) -> int:
    """The first stage of a job that can begin now, or else the first that can get executors.

    By path, the one with the longest path in place of the first.
    """
    best, longest, best_ready = NOWHERE, 0.0, False
    for number in range(episode.jobs[job].num_stages):
        if can_take(episode, job, number):
            target = job * episode.options.span + number
            stage = episode.stages[target]
            path = stage.path if by_path else 0.0
            ready = stage.parents & episode.jobs[job].unfinished == 0
            if best < 0 or ready > best_ready or (ready == best_ready and path > longest):
                best, longest, best_ready = target, path, ready
    return best


@njit_inlined
def best_by_score(episode: Episode, weights: NDArray[np.float64]) -> tuple[int, int]:
    """The stage of the lowest score, see `PRIORITY` and `SHARE`."""
    record, w = episode.record, episode.weights
    own = job_of_pool(episode, record.source)
    size = record.recent_log_work - _LN_SIZE
    for k in range(NUM_WEIGHTS):
        w[k] = weights[0, k] + size * weights[1, k] + record.recent_burst * weights[2, k]
    share = w[len(PRIORITY) :]
    # Shares of all jobs: their largest exponent is 0, so that none overflows.
    top = -np.inf
    for i in range(record.num_here):
        job = episode.jobs[episode.here[i]]
        job.log_left = np.log(max(job.work_left, 1.0)) - _LN_WORK
        job.log_age = np.log(1.0 + (record.time - job.arrival) / _AGE)
        job.share = share[0] * job.log_left + share[1] * (job.log_work - _LN_WORK)
        job.share += share[2] * job.log_age
        top = max(top, job.share)
    total = 0.0
    for i in range(record.num_here):
        job = episode.jobs[episode.here[i]]
        job.share = np.exp(job.share - top)
        total += job.share
    scale = episode.options.executors * np.exp(min(share[3], 20.0)) / total
    least, best, best_room = np.inf, NOWHERE, 0
    for i in range(record.num_here):
        number = episode.here[i]
        job = episode.jobs[number]
        room = num_free(episode)
        if number != own:
            most = min(np.ceil(scale * job.share), float(episode.options.executors))
            room = int(most) - job.held
        if room <= 0 or job.wanting & ~job.chosen == 0:
            continue
        score = w[0] * job.log_left + w[1] * (job.log_work - _LN_WORK)
        score += w[2] * job.log_age
        score += w[3] * np.log(1.0 + job.held) + w[4] * (number == own)
        for k in range(job.num_stages):
            if not can_take(episode, number, k):
                continue
            target = number * episode.options.span + k
            stage = episode.stages[target]
            of_stage = score + w[5] * (stage.log_path - _LN_PATH)
            of_stage += w[6] * (stage.parents & job.unfinished == 0)
            if of_stage < least:
                least, best, best_room = of_stage, target, room
    if best < 0:
        return NOWHERE, 0
    return best, min(best_room, most_of(episode, best))
