"""Real job logs: every rule and policy on each of them, at one bound on waits.

A mean over a whole log hangs on a few jobs. So policies are compared week by week with the best
rule of their log: by ln ratios of the mean bounded slowdowns of the jobs submitted in a week.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.core.spec import TRAINING_DATA
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.worlds import get_spec
from rllib_configs.config.changes import change
from rllib_configs.config.extensions import entered
from rllib_configs.config.loading import parse_config
from tune_jobs.measuring.policy_specs import check_specs, split_names
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import find_runs, load_runs, training_jobs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import files_of
from tune_jobs.recipes.site_leaderboard import leaderboard
from tune_jobs.recipes.site_units import (
    BUSY,
    MAX_WAIT,
    NO_BOUND,
    PEEKS,
    PRICE,
    REFERENCE,
    Contender,
    Found,
    Unit,
    find_all,
)
from tune_jobs.replaying.choices import WORLD
from tune_jobs.tables.frames import Row, frame_of, write_table
from tune_jobs.terminal.files import digest

RULES = (
    *("fcfs:easy", "sjf:easy", "saf:easy", "wspt:easy", "f1:easy"),
    *("unicep:easy", "wfp3:easy", "priority:easy"),
    *("sjf:skip", "saf:skip", "wspt:skip", "saf:strict"),
)
"""Orders of the literature with EASY, three that never reserve, one that never backfills, and the
weighted sum of Slurm's sites. Conservative backfilling is left out: with thousands of waiting jobs
it takes hours."""

BY_PREDICTIONS = ("sjf:easy", "saf:easy", "wspt:easy", "wspt:skip")
"""Rules that are also played with predicted run times, as `hpc-order` predicts them: how much of
what it gains is in the predictions, and how much in the order. They are no reference."""

DEFAULT_BOUND = "x2"

WEEKS, LEADERBOARD = "sites-weeks.csv", "sites-leaderboard.csv"

ENTRIES = "sites-entries.csv"
"""A row for each policy on each log: where the policy is from (``source``), the logs that it has
seen (``trained_on``), seconds of CPU that playing took (``cpu_s``), and ``reason``, why a policy of
others has no row in the table."""

_DIGITS = 4  # of weekly means in their file


@dataclass(frozen=True, eq=False)
class Log:
    """A log that can be played.

    Attributes:
        name: of its file, up to the first point where that tells it from the others.
        unit: that describes it.
        facts: what came of that.
    """

    name: str
    unit: Unit
    facts: Found

    def under(self, contender: Contender) -> Unit:
        """The log under a policy, at the bound on waits that was found for it."""
        bound = f"{self.facts['max_wait']}s" if self.facts["max_wait"] else NO_BOUND
        options = {**self.unit.options, MAX_WAIT: bound}
        jobs = self.facts["jobs"]
        return replace(self.unit, options=options, contender=contender, num_jobs=jobs)


Played = Mapping[Contender, Found]
"""What came of a log under each policy."""


def collect(request: FigureRequest) -> list[Row]:
    """Plays all logs under all rules, shipped policies, runs and policies of installed packages.

    See `site_units.NUMBERS`. Files beside the table get the weekly means, and what is known of each
    policy (`ENTRIES`). A policy of others that fails on a log has no row of that log, and one that
    peeks on any has none at all. `leaderboard` says what is made of all.

    Raises:
        InputError: if no log is named or can be used, a policy cannot act, or what was said of a
            machine names none of the logs.
    """
    contenders = _contenders(request.runs)
    units = units_of_logs(request)
    described = find_all(list(units.values()), request.work, "log")
    logs = []
    for (name, unit), facts in zip(units.items(), described, strict=True):
        if "reason" in facts:
            request.work.progress.say(f"{unit.path.name} is left out: {facts['reason']}")
        else:
            logs.append(Log(name, unit, facts))
    if not logs:
        raise InputError(f"none of {len(units)} files is a job log that can be played")
    # The longest first, so that no process is left with it at the end.
    logs.sort(key=lambda log: (-log.facts["jobs"], log.name))
    _check(contenders, logs[-1])
    replays = [log.under(contender) for log in logs for contender in contenders]
    results = find_all(replays, request.work, "replay")
    of_log = iter(results)
    every = {log: dict(zip(contenders, of_log, strict=False)) for log in logs}
    by_name = sorted(logs, key=lambda log: log.name)
    entries = list(_entries(every, by_name))
    for row in entries:
        if row["reason"]:
            request.work.progress.say(f"{row['policy']} on {row['log']}: {row['reason']}")
    refused = {(row["log"], row["policy"]) for row in entries if row["reason"]}
    played = {
        log: {one: found for one, found in own.items() if (log.name, one.name) not in refused}
        for log, own in every.items()
    }
    said = str(request.task_options.get(MAX_WAIT, DEFAULT_BOUND))
    rows = [row for log in by_name for row in _rows(log, played[log], said)]
    if request.out is not None:
        weeks = pd.concat(_weeks(log, played[log]) for log in by_name)
        write_table(request.out / WEEKS, weeks)
        write_table(request.out / ENTRIES, entries)
        write_table(request.out / LEADERBOARD, leaderboard(frame_of(rows), weeks, RULES))
    return rows


def units_of_logs(request: FigureRequest) -> dict[str, Unit]:
    """What describes each file, by the name of its log.

    Raises:
        InputError: if a setting cannot be made of any log, or a number of processors is of none.
    """
    data: dict[str, Any] = {"task": {"world": {"kind": WORLD}}}
    data["task"]["workload"] = {"kind": "trace", "path": "any"}
    change(data, request.overrides)
    parse_config(data)
    options = {MAX_WAIT: DEFAULT_BOUND}
    options |= {name: str(value) for name, value in request.task_options.items()}
    sizes = _sizes(options.pop("processors", ""))
    units = {}
    for name, path in _by_name(list(files_of(request.traces))).items():
        said = [sizes[key] for key in (name, path.name, "") if key in sizes]
        own = {**options, "processors": said[0]} if said else options
        units[name] = Unit(path, digest(path), tuple(request.overrides), own)
    known = {"", *units, *(unit.path.name for unit in units.values())}
    for name in sizes.keys() - known:
        raise InputError(f"--processors names '{name}', but there is no such file of a log")
    return units


def _sizes(text: str) -> dict[str, str]:
    """Processors by the name of a log, from ``NAME=N,...``; a number alone holds for all."""
    sizes = {}
    for part in filter(None, text.split(",")):
        name, is_named, count = part.rpartition("=")
        if not count.isdecimal() or not int(count) or (is_named and not name):
            raise InputError(f"--processors takes NAME=N,... or a number, not '{text}'")
        sizes[name] = count
    return sizes


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    """Files by their names up to the first point, or their whole names where these are the same."""
    short = [path.name.partition(".")[0] for path in files]
    named = {
        name if short.count(name) == 1 else path.name: path
        for name, path in zip(short, files, strict=True)
    }
    if len(named) < len(files):
        raise InputError("two files of logs have the same name; rename one")
    return named


def _contenders(runs: Sequence[str]) -> list[Contender]:
    """The rules, what ships for the world, the runs that were named, and policies of others."""
    shipped = get_spec(WORLD).training.policies.values()
    folders = dict.fromkeys([*shipped, *find_runs(split_names(runs))])
    learned = [Contender(folder.name, folder) for folder in folders]
    others = [
        Contender(name, entry=one) for name, one in entered(get_spec(WORLD).heuristics).items()
    ]
    return [
        *map(Contender, RULES),
        *map(Contender.predicting, BY_PREDICTIONS),
        *learned,
        *others,
    ]


def _check(contenders: Sequence[Contender], log: Log) -> None:
    """Finds out on one log whether all can act, before hours are spent."""
    task, _ = log.under(contenders[0]).task()
    # Those of others are called in processes of their own alone.
    specs = [one.spec() for one in contenders if one.entry is None]
    check_specs(EvaluationProtocol(task, num_jobsets=1), specs)


def _entries(every: Mapping[Log, Played], logs: Sequence[Log]) -> Iterator[Row]:
    """The rows of `ENTRIES`."""
    peeking = {
        one.name: f"{found[PEEKS]} ({log.name})"
        for log in reversed(logs)
        for one, found in every[log].items()
        if PEEKS in found
    }
    for log in logs:
        for one, found in every[log].items():
            yield {
                "table": "sites-entries",
                "log": log.name,
                "policy": one.name,
                "source": "metasched" if one.entry is None else one.entry.source,
                "trained_on": _trained_on(one),
                "cpu_s": found.get("cpu_s", np.nan),
                "reason": peeking.get(one.name) or str(found.get("reason", "")),
            }


def _trained_on(contender: Contender) -> str:
    """The logs that a policy has seen, as far as its authors say that."""
    if contender.folder is not None:
        (run,) = load_runs([contender.folder], "argmax")
        return training_jobs(run.config)[1]
    if contender.entry is None:
        return "none"
    if contender.name not in TRAINING_DATA.names():
        return "undeclared"
    return ", ".join(TRAINING_DATA.get(contender.name)) or "none"


def _weeks(log: Log, played: Played) -> pd.DataFrame:
    """Weekly mean bounded slowdowns: a row for each week of a log, a column for each policy."""
    jobs = log.facts["week_jobs"]
    means = {one.name: np.round(found["weeks"], _DIGITS) for one, found in played.items()}
    head = {"table": "sites-weeks", "log": log.name}
    return pd.DataFrame({**head, "week": range(1, len(jobs) + 1), "jobs": jobs, **means})


def _rows(log: Log, played: Played, said: str) -> Iterator[Row]:
    """The rows of a log: each policy relative to the rule with the lowest weekly slowdowns."""
    # Weeks without a job carry no information; all policies have the same ones.
    facts = log.facts
    logs = {one: np.log(found["weeks"]) for one, found in played.items()}
    rules = [one for one in played if one.name in RULES]
    best = min(rules, key=lambda one: float(np.nanmean(logs[one])))
    whole = {one: float(found["bounded_slowdown"]) for one, found in played.items()}
    best_whole = min(rules, key=whole.__getitem__)
    reference = next(one for one in rules if one.name == REFERENCE)
    head = {
        "log": log.name,
        "file": log.unit.path.name,
        "sha256": log.unit.sha256,
        **{key: facts[key] for key in ("jobs", "left_out", "processors", "size_from")},
        **{key: facts[key] for key in ("days", "load", "users", "max_wait")},
        "bound": said,
        "kind": "busy" if whole[reference] >= BUSY else "calm",
        "weeks": sum(count > 0 for count in facts["week_jobs"]),
        "best_rule": best.name,
        "best_rule_whole": best_whole.name,
    }
    for one, found in played.items():
        difference = logs[one] - logs[best]
        ratio = jobset_interval(Pooled.each(difference[np.isfinite(difference)]))
        yield {
            **head,
            "policy": one.name,
            "learned": one.folder is not None,
            "ratio": float(np.exp(ratio.value)),
            "ratio_low": float(np.exp(ratio.low)),
            "ratio_high": float(np.exp(ratio.high)),
            "ratio_whole": whole[one] / whole[best_whole],
            **{key: found.get(key, np.nan) for key in PRICE},
        }
