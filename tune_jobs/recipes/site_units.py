"""What the figure ``sites`` is made of: a log described, and a whole log under one policy.

Both are pure functions of the log's file, the machine, the bound on waits and the policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cluster_env.core.errors import Failure, InputError
from cluster_env.core.policy import Policy
from cluster_env.evaluation import PolicyGroup, evaluate
from cluster_env.evaluation.metrics import size_class, wait
from cluster_env.objectives.standard import bounded_slowdown
from cluster_env.task import Task
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.worlds import get_heuristic
from rllib_configs.config.extensions import Extension
from tune_jobs.measuring.fingerprints import fingerprint
from tune_jobs.measuring.policy_specs import (
    PolicySpec,
    heuristic_spec,
    learned_spec,
)
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import content_of, load_runs
from tune_jobs.measuring.work import Work
from tune_jobs.processes.limited import Limits, call_apart
from tune_jobs.recipes.peeking import peeks
from tune_jobs.replaying.choices import read_as_said, task_of_log
from tune_jobs.replaying.description import WEEK_S
from tune_jobs.replaying.outcomes import SIZES, of_groups, outcome
from tune_jobs.terminal.files import digest

TEXTS = (
    *("log", "file", "sha256", "size_from", "bound", "kind", "best_rule", "best_rule_whole"),
    *("policy", "learned"),
)

NUMBERS = (
    *("jobs", "left_out", "processors", "days", "load", "users", "max_wait", "weeks"),
    *("ratio", "ratio_low", "ratio_high", "ratio_whole"),
    *("bounded_slowdown", "utilization", "to_end", "mean_wait", "wait_95", "longest_wait"),
    *("overdue", "unfinished", "user_slowdown", "user_wait"),
    *("bounded_slowdown_narrow", "bounded_slowdown_medium", "bounded_slowdown_wide"),
    *("mean_wait_narrow", "mean_wait_medium", "mean_wait_wide"),
    *("longest_wait_narrow", "longest_wait_medium", "longest_wait_wide"),
)
"""Columns of the table, a row for each log and policy; times are seconds.

``ratio`` is a policy's mean bounded slowdown of a week over that of ``best_rule``, as a geometric
mean over weeks, with its interval. ``ratio_whole`` is the mean bounded slowdown of the whole log
over that of ``best_rule_whole``, the rule with the lowest.
"""

PRICE = NUMBERS[NUMBERS.index("bounded_slowdown") :]
"""Those of a log under one policy."""

PREDICTED = " (predicted)"
"""What a rule's name ends in where it goes by predicted run times, and not by estimates."""

REFERENCE = "fcfs:easy"
"""The rule that says whether a log is busy, and from whose waits the bound comes."""

BUSY = 3.0
"""Mean bounded slowdown under `REFERENCE` from which a log is busy; below, hardly anybody waits."""

Found = dict[str, Any]
"""What came of a unit: plain data, which a line of JSON holds (with NaN, as Python writes it)."""

PEEKS = "peeks"
"""Of a policy of others, a sentence about how it uses what has not happened yet."""

START_S, JOB_S, MEMORY = 60.0, 2e-3, 8 << 30
"""Limits of a policy of others on a log: seconds to start, for each job, and bytes of addresses."""

NO_BOUND = "0"
MAX_WAIT = "max-wait"
"""Name of the world's option for the bound on waits."""

_OF_GROUP = ("bounded_slowdown", "mean_wait", "longest_wait")


@dataclass(frozen=True)
class Contender:
    """A rule by its name, or a policy by the folder that holds it.

    Attributes:
        name: as tables show it.
        folder: of a learned policy; None for a rule.
        rule: of a rule that goes by predicted run times, its own name; see `predicting`.
        entry: of a policy of others, what entered it; None for those of metasched.
    """

    name: str
    folder: Path | None = None
    rule: str = ""
    entry: Extension | None = None

    def spec(self) -> PolicySpec:
        """What plays; learned policies choose the likeliest action, as in ``replay``."""
        if self.entry is not None:
            return PolicySpec(self.name, self._entered)
        if self.folder is None:
            spec = heuristic_spec(self.rule or self.name)
            return replace(spec, key=self.name, named=not self.rule)
        spec = learned_spec("", load_runs([self.folder], "argmax"), "argmax")
        return replace(spec, key=self.name)

    def _entered(self, protocol: EvaluationProtocol) -> PolicyGroup:
        return PolicyGroup(self.name, (get_heuristic(self.name, protocol.task.world),))

    @classmethod
    def predicting(cls, rule: str) -> "Contender":
        """A rule that goes by the run times that `hpc-order` predicts, and not by estimates."""
        return cls(f"{rule}{PREDICTED}", rule=rule)

    @property
    def overrides(self) -> tuple[str, ...]:
        """What it changes of the task."""
        return ("task.world.run_times=mixed",) if self.rule else ()

    def content(self) -> list[str]:
        """Digests of the files that it consists of; empty for a rule of metasched."""
        if self.entry is not None:
            return [self.entry.source, *map(digest, self.entry.files())]
        return [] if self.folder is None else content_of(self.folder)


@dataclass(frozen=True)
class Unit:
    """A log to describe, or to play under a contender.

    Attributes:
        path: the log.
        sha256: of its file.
        overrides: changes of the task, ``key=value``.
        options: of the world, by name: the machine as far as somebody said it, and the bound.
        contender: what plays; None to describe the log.
        num_jobs: of the log, if it is known; policies of others have time for each.
    """

    path: Path
    sha256: str
    overrides: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    contender: Contender | None = None
    num_jobs: int = 0

    def key(self) -> str:
        """A digest of all that its numbers depend on; the name of the file is no part of it."""
        who = [] if self.contender is None else [self.contender.name, *self.contender.content()]
        return fingerprint(self.sha256, self.overrides, sorted(self.options.items()), who)

    def task(self) -> tuple[Task, RecordedJobs]:
        """A task whose one jobset is the whole log, and its jobs.

        Raises:
            InputError: if the log or what was said of it cannot be used.
        """
        own = () if self.contender is None else self.contender.overrides
        overrides = (*self.overrides, *own)
        task, jobs, _ = task_of_log(self.path, overrides, dict(self.options), guess=True)
        return task, jobs

    def find(self) -> Found:
        """What the unit is made for; see `describe`, `measure` and `measure_apart`."""
        if self.contender is None:
            return describe(self)
        return measure_apart(self) if self.contender.entry else measure(self, self.contender)


def describe(unit: Unit) -> Found:
    """Machine, jobs, weeks and bound of a log; or ``reason``, why it cannot be used."""
    try:
        read = read_as_said(unit.path, unit.overrides, unit.options)
        task, jobs = replace(unit, options={**unit.options, MAX_WAIT: NO_BOUND}).task()
        capacity = task.world.capacity  # type: ignore[attr-defined]
        size = "said" if "processors" in unit.options else "header" if read.processors else "log"
        load = float(jobs.load(capacity)[0])
        # A machine as large as the largest job alone is a guess that a load above 1 disproves.
        if size == "log" and jobs.most_in_use is None and load > 1:
            raise InputError(
                f"the log does not say how large its machine is, and with {capacity[0]:,} "
                f"processors, as many as its largest job has, its load would be {load:.0%}; "
                f"give the number with --processors NAME=N"
            )
        bound = unit.task()[0].world.max_wait  # type: ignore[attr-defined]
    except InputError as error:
        return {"reason": str(error).replace(f"{unit.path.parent}/", "")}
    week = weeks_of(jobs)
    return {
        "jobs": jobs.num_jobs,
        "left_out": sum(one.count for one in jobs.dropped),
        "processors": int(capacity[0]),
        "size_from": size,
        "days": jobs.span / 86_400,
        "load": load,
        "users": 0 if (user := users_of(jobs)) is None else int(np.unique(user).size),
        "max_wait": int(bound),
        "week_jobs": np.bincount(week).tolist(),
    }


def measure(unit: Unit, contender: Contender) -> Found:
    """A whole log under a policy: headline and price, also by size, by user and by week.

    ``user_slowdown`` and ``user_wait`` are means over users of what each of them has in the mean;
    ``overdue`` counts the jobs that waited longer than the bound. ``weeks`` holds the mean bounded
    slowdown of the jobs that were submitted in each week, NaN for a week without any. ``cpu_s`` are
    the seconds that playing took. Of a policy of others that peeks, there is its sentence alone.
    """
    task, jobs = unit.task()
    protocol = EvaluationProtocol(task, num_jobsets=1)

    def make() -> Policy:
        return contender.spec().make(protocol).members[0]

    (jobset,), begin = protocol.held_out(), process_time()
    schedule = evaluate(make(), [jobset], task.world, run_seed=task.seed)
    cpu_s = process_time() - begin
    is_checked = contender.entry is not None
    if is_checked and (sentence := peeks(make, task.world, jobset, schedule, task.seed)):
        return {PEEKS: sentence}
    found: Found = {**outcome(schedule, jobs.resources), "cpu_s": round(cpu_s, 2)}
    sizes = of_groups(schedule, size_class(schedule), len(SIZES))
    for name in ("jobs", *_OF_GROUP):
        found |= {f"{name}_{size}": float(sizes[name][k]) for k, size in enumerate(SIZES)}
    waited, slowdown = wait(schedule), bounded_slowdown(schedule)
    bound: int = task.world.max_wait  # type: ignore[attr-defined]
    found["overdue"] = int((waited > bound).sum()) if bound else 0
    if (user := users_of(jobs)) is not None:
        users = pd.DataFrame({"slowdown": slowdown, "wait": waited})
        means = users.groupby(user[schedule.job]).mean().mean()
        found |= {"user_slowdown": float(means["slowdown"]), "user_wait": float(means["wait"])}
    week = weeks_of(jobs)
    by_week = pd.Series(slowdown).groupby(week[schedule.job]).mean().reindex(range(week[-1] + 1))
    found["weeks"] = by_week.tolist()
    return found


def measure_apart(unit: Unit) -> Found:
    """`measure` of a policy of others, in a process of its own; or ``reason``, why it failed."""
    limits = Limits(START_S + JOB_S * unit.num_jobs, MEMORY)
    try:
        found: Found = call_apart(_measure, unit, limits)
    except Failure as error:
        return {"reason": str(error)}
    return found


def _measure(unit: Unit) -> Found:
    assert unit.contender is not None
    found = measure(unit, unit.contender)
    plain = (value.tolist() if isinstance(value, np.generic) else value for value in found.values())
    return dict(zip(found, plain, strict=True))


def users_of(jobs: RecordedJobs) -> NDArray[np.int64] | None:
    """The user of each job; None where the log does not tell users apart."""
    user = jobs.ids.get("user")
    return None if user is None or user.min() == user.max() else user


def weeks_of(jobs: RecordedJobs) -> NDArray[np.int64]:
    """The week of each job since the first submission, int64 ``(num_jobs,)``."""
    return np.asarray((jobs.submit - jobs.submit[0]) // WEEK_S, np.int64)


def find_all(units: Sequence[Unit], work: Work, kind: str) -> list[Found]:
    """What came of units, in their order, all of one kind, such as ``log``."""
    keys = [unit.key() for unit in units]
    return list(work.measure(_find, None, units, keys=keys, unit=kind, name=_name))


def _find(_: None, unit: Unit) -> Found:
    return unit.find()


def _name(unit: Unit, found: Found) -> str:
    who = "" if unit.contender is None else f" under {unit.contender.name}"
    return f"{unit.path.name}{who}"
