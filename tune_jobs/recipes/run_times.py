"""Run times of real job logs: who foresees them best, and what that is worth to a schedule.

Each log is foreseen by what was learned from the others. All contenders know the same: what had
ended under `REFERENCE` when a job was submitted (`meta.run_times.known`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.forecasting.past import asked
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.task import Task
from cluster_env.worlds import get_spec
from meta.run_times.known import BINS, CENTERS, SHORTEST_S, Known, known_of
from tune_jobs.measuring.fingerprints import fingerprint
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import files_of
from tune_jobs.recipes.site_units import MAX_WAIT, REFERENCE, Contender, weeks_of
from tune_jobs.replaying.choices import WORLD, task_of_log
from tune_jobs.replaying.outcomes import outcome
from tune_jobs.tables.frames import Row, estimate_cells
from tune_jobs.terminal.files import digest

SEEN = (0, 30, 100, 300, 1_000, 3_000, 10_000)
"""Jobs of the log that had been submitted before those of a row."""

MOST_JOBS = 100_000
"""Of a log that count: its first ones."""

PRICE = ("mean_wait", "longest_wait", "to_end")
"""What stands beside a slowdown."""

TEXTS = ("log", "contender", "seen", "policy")

NUMBERS = (
    *("seed", "jobs", "loss", "pinball", "excess", "excess_low", "excess_high"),
    *("ratio", "ratio_low", "ratio_high", "bounded_slowdown", *PRICE),
)
"""Columns of the table, see `collect`; a row has either losses or what came of a schedule."""

TRUE = "true run times"

BASE = "shrunk means"
"""The formula that losses are compared with."""

ALL = "all logs"
"""The log of the rows over all of them, which have means and their intervals."""

SHIFTED = "shift"
"""The rows of jobs after all users of a site have changed places, in the middle of its log."""

_AFTER_SHIFT = 1_000  # jobs

SEEDS = range(1)
"""Of the networks. Logs are what intervals are over."""

PLAYED = ("sjf:easy", "hpc-order")
"""What orders the jobs of a log by their foreseen run times, at one bound on waits."""

LEVELS = np.arange(1, 10) / 10
"""Quantiles that the pinball loss is a mean over."""

_UNIFORM = 1e-3  # of each distribution, so that nobody's score is infinite

Probabilities = NDArray[np.float64]  # (num_jobs, BINS)


@dataclass(frozen=True, eq=False)
class Log:
    """A log that is foreseen.

    Attributes:
        name: of its file, up to the first point.
        task: its one jobset is all of it.
        jobs: its first ones.
        week: of each.
        finish: of each under `REFERENCE`.
        known: of each at its submission.
    """

    name: str
    task: Task
    jobs: JobSet
    week: NDArray[np.int64]
    finish: NDArray[np.int64]
    known: Known

    def ended_before(self, job: int) -> NDArray[np.int64]:
        """Those that had ended when a job was submitted, by their finish."""
        ended = np.flatnonzero(self.finish <= self.jobs.arrival[job])
        return ended[np.argsort(self.finish[ended], kind="stable")]


def collect(request: FigureRequest) -> list[Row]:
    """Rows of each log, contender and number of jobs seen, and of the schedules that come of them.

    ``loss`` is the mean negative log likelihood of a job's bin, in nats; ``pinball`` the mean over
    `LEVELS` and jobs of the quantile loss of ln(run time). ``ratio`` is a schedule's weekly mean
    bounded slowdown over that by the users' estimates, as a geometric mean over weeks.

    Raises:
        InputError: if no two logs are named that know what users ask for.
    """
    paths = []
    for path in files_of(request.traces):
        try:
            _read(path)
        except InputError as error:
            request.work.progress.say(f"{path.name} is left out: {error}")
        else:
            paths.append(path)
    if len(paths) < 2:
        raise InputError("what is learned from logs is tried on another one: name two or more")
    pieces = [(path, seed) for seed in SEEDS for path in paths]
    files = [digest(path) for path in paths]
    keys = [fingerprint(files, digest(path), seed) for path, seed in pieces]
    found = request.work.measure(
        _of_log, paths, pieces, keys=keys, unit="log and seed", name=lambda one, _: one[0].name
    )
    empty: Row = {"policy": "", **dict.fromkeys(NUMBERS, np.nan)}
    own = [{**empty, **row} for rows in found for row in rows]
    return [*own, *({**empty, **row} for row in _over_logs(own))]


def _over_logs(rows: Sequence[Row]) -> Iterator[Row]:
    """Means over logs, each the mean of its seeds; losses less those of `BASE`."""
    place = ["policy", "seen", "contender", "log"]
    means = pd.DataFrame(rows).groupby(place, sort=False)[["loss", "ratio", *PRICE]].mean()
    sorted_losses = means["loss"].sort_index()
    for (policy, seen, name), one in means.groupby(place[:3], sort=False):
        head: Row = {"log": ALL, "contender": name, "seen": seen, "policy": policy}
        one = one.droplevel(place[:3])
        if policy:
            found = jobset_interval(Pooled.each(np.log(one["ratio"].to_numpy())))
            ends = np.exp([found.value, found.low, found.high])
            price = {name: float(one[name].mean()) for name in PRICE}
            ratio = dict(zip(("ratio", "ratio_low", "ratio_high"), ends, strict=True))
            yield {**head, **ratio, **price}
        else:
            excess = one["loss"] - sorted_losses.loc[policy, seen, BASE]
            found = jobset_interval(Pooled.each(excess.to_numpy()))
            yield {**head, **estimate_cells("excess", found)}


@lru_cache(maxsize=2)
def _read(path: Path) -> tuple[Task, JobSet, NDArray[np.int64]]:
    task, recorded, _ = task_of_log(path, (), {MAX_WAIT: "x2"}, guess=True)
    whole = recorded.jobset()
    if "estimate" not in whole.attributes:
        raise InputError("it does not say what users asked for")
    jobs = whole.select(slice(MOST_JOBS))
    return task, jobs, weeks_of(recorded)[: jobs.num_jobs]


@lru_cache(maxsize=16)
def _log(path: Path) -> Log:
    task, jobs, week = _read(path)
    schedule = _play(task, jobs, REFERENCE)
    finish = np.empty(jobs.num_jobs, np.int64)
    finish[schedule.job] = schedule.finish
    processors = int(task.world.capacity[0])  # type: ignore[attr-defined]
    known = known_of(jobs, finish, processors)
    return Log(path.name.partition(".")[0], task, jobs, week, finish, known)


def _play(task: Task, jobs: JobSet, policy: str) -> Any:
    shipped = get_spec(WORLD).training.policies
    spec = Contender(policy, shipped.get(policy)).spec()
    played = spec.make(EvaluationProtocol(task, num_jobsets=1)).members[0]
    return evaluate(played, [jobs], task.world, run_seed=0)


def _of_log(paths: Sequence[Path], piece: tuple[Path, int]) -> list[Row]:
    """The rows of a log and a seed; those that no seed changes stand with the first one."""
    path, seed = piece
    log = _log(path)
    others = [_log(other).known for other in paths if other != path]
    shifted = replace(log, known=_after_shift(log))
    contenders = _learned(log, shifted, others, seed)
    if seed == SEEDS[0]:
        contenders = {**_formulas(log, shifted), **contenders}
    rows: list[Row] = []
    head: Row
    base = _weekly(log, asked(log.jobs))
    for name, (usual, after) in contenders.items():
        head = {"log": log.name, "contender": name, "seed": seed}
        rows += ({**head, **one} for one in _scores(log, usual, after))
        rows += ({**head, **one} for one in _worth(log, _believed(log, usual), base))
    if seed == SEEDS[0]:
        head = {"log": log.name, "contender": TRUE, "seed": seed}
        true = np.maximum(log.jobs.duration.astype(np.int64), 1)
        rows += ({**head, **one} for one in _worth(log, true, base))
    return rows


def _after_shift(log: Log) -> Known:
    """What is known where the users of the second half are others than those of the first."""
    user = np.asarray(log.jobs.attributes.get("user", np.zeros(log.jobs.num_jobs)), np.int64)
    names, number = np.unique(user, return_inverse=True)
    changed = np.random.default_rng(0).permutation(names)[number]
    middle = log.jobs.num_jobs // 2
    moved = np.where(np.arange(user.size) < middle, changed, user)
    jobs = replace(log.jobs, attributes={**log.jobs.attributes, "user": moved})
    processors = int(log.task.world.capacity[0])  # type: ignore[attr-defined]
    return known_of(jobs, log.finish, processors)


def _formulas(log: Log, shifted: Log) -> dict[str, tuple[Probabilities, Probabilities]]:
    """Contenders that learn from the log alone."""
    return {
        name: (function(log), function(shifted))
        for name, function in (("all jobs", _all_jobs), (BASE, _nested))
    }


def _all_jobs(log: Log) -> Probabilities:
    """What all jobs of the site took, whoever asked for it."""
    return log.known.shares[:, -1].astype(np.float64)


def _nested(log: Log) -> Probabilities:
    """Each group's shares, drawn to those of a wider one, by the counts of `metasched.starts`."""
    shares, ended = log.known.shares, np.expm1(log.known.facts[:, 3::2] * 5)
    found, left = np.zeros((log.jobs.num_jobs, BINS)), np.ones(log.jobs.num_jobs)
    for group, most in ((1, 8.0), (5, 20.0), (6, 1000.0)):
        count = np.minimum(ended[:, group], most)
        part = left * count / (count + 20)
        found += part[:, None] * shares[:, group]
        left = left - part
    return np.asarray(found + left[:, None] * shares[:, -1], np.float64)


def _learned(
    log: Log, shifted: Log, others: Sequence[Known], seed: int
) -> dict[str, tuple[Probabilities, Probabilities]]:
    """A joint network of the other logs, the same with gradient steps at this site, and MAML."""
    import torch  # takes seconds

    from meta.run_times.learning import Meta, probabilities, train_jointly

    torch.set_num_threads(1)
    network = train_jointly(others, seed)
    joint = probabilities(network, log.known), probabilities(network, shifted.known)
    meta = Meta(network)
    steps = _adapted(log, meta), _adapted(shifted, meta)
    meta.train(others, seed)
    return {
        "joint": joint,
        "joint, 3 steps": steps,
        "MAML, 3 steps": (_adapted(log, meta), _adapted(shifted, meta)),
    }


def _adapted(log: Log, meta: Any) -> Probabilities:
    """A network that gets gradient steps on the log's own jobs at each of `SEEN`."""
    from meta.run_times.learning import SUPPORT, probabilities

    found = probabilities(meta.network, log.known)
    for first, last in _stretches(log.jobs.num_jobs):
        ended = log.ended_before(first)[-SUPPORT:]
        if ended.size >= SEEN[2]:
            steps = {
                name: one.detach() for name, one in meta.adapted(log.known.rows(ended)).items()
            }
            found[first:last] = probabilities(
                meta.network, log.known.rows(slice(first, last)), steps
            )
    return found


def _stretches(num_jobs: int) -> Iterator[tuple[int, int]]:
    """The jobs between `SEEN`, and then between twice as many each."""
    ends = [*SEEN]
    while ends[-1] < num_jobs:
        ends.append(2 * ends[-1])
    for first, last in pairwise(ends):
        if first < num_jobs:
            yield first, min(last, num_jobs)


def _scores(log: Log, usual: Probabilities, after: Probabilities) -> Iterator[Row]:
    """Losses by jobs seen, over all, and of the first jobs after the shift."""
    num, middle = log.jobs.num_jobs, log.jobs.num_jobs // 2
    places = {
        f"{first}": slice(first, last) for first, last in zip(SEEN, (*SEEN[1:], num), strict=True)
    }
    places = {
        "all": slice(num),
        **{seen: part for seen, part in places.items() if part.start < num},
    }
    for seen, part in places.items():
        yield {"seen": seen, **_losses(log, usual, part)}
    if "user" in log.jobs.attributes:
        yield {"seen": SHIFTED, **_losses(log, after, slice(middle, middle + _AFTER_SHIFT))}


def _losses(log: Log, probabilities: Probabilities, part: slice) -> Mapping[str, float]:
    share, place = _spread(probabilities[part]), log.known.bin[part]
    loss = -np.log(share[np.arange(place.size), place])
    quantiles = CENTERS[(share.cumsum(axis=1)[:, :, None] >= LEVELS).argmax(axis=1)]
    beyond = CENTERS[place][:, None] - quantiles
    pinball = np.maximum(LEVELS * beyond, (LEVELS - 1) * beyond)
    return {"jobs": place.size, "loss": float(loss.mean()), "pinball": float(pinball.mean())}


def _spread(probabilities: Probabilities) -> Probabilities:
    known = probabilities.sum(axis=1, keepdims=True)
    share = np.where(known > 0, probabilities / np.maximum(known, 1e-9), 1 / BINS)
    return np.asarray((1 - _UNIFORM) * share + _UNIFORM / BINS, np.float64)


def _believed(log: Log, probabilities: Probabilities) -> NDArray[np.int64]:
    """Half way, by logarithms, between what users ask for and what is foreseen: seconds.

    As the correction ``mixed`` does, so that contenders differ in what they foresee alone.
    """
    limit = np.maximum(asked(log.jobs), SHORTEST_S)
    expected = _spread(probabilities) @ CENTERS
    seconds = np.ceil(limit * np.exp(expected / 2)).astype(np.int64)
    return np.clip(seconds, 1, asked(log.jobs))


def _weekly(log: Log, believed: NDArray[np.int64]) -> dict[str, tuple[Any, NDArray[np.float64]]]:
    """Under each of `PLAYED`, the schedule and ln of the mean bounded slowdown of each week."""
    attributes = {**log.jobs.attributes, "order_estimate": believed.astype(np.int32)}
    jobs = replace(log.jobs, attributes=attributes)
    found = {}
    for policy in PLAYED:
        schedule = _play(log.task, jobs, policy)
        week = log.week[schedule.job]
        counts = np.bincount(week)
        means = np.bincount(week, bounded_slowdown(schedule))[counts > 0] / counts[counts > 0]
        found[policy] = schedule, np.log(means)
    return found


def _worth(log: Log, believed: NDArray[np.int64], base: Mapping[str, Any]) -> Iterator[Row]:
    """What schedules come of foreseen run times, over those by the users' estimates."""
    for policy, (schedule, weekly) in _weekly(log, believed).items():
        numbers = outcome(schedule, ("processors",))
        yield {
            "seen": "all",
            "policy": policy,
            "jobs": schedule.job.size,
            "ratio": float(np.exp((weekly - base[policy][1]).mean())),
            **{name: numbers[name] for name in ("bounded_slowdown", *PRICE)},
        }
