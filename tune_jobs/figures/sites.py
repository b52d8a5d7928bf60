"""Real job logs: every rule and policy on each of them, at one bound on waits.

A mean over a whole log hangs on a few jobs. So policies are compared week by week with the best
rule of their log: by ln ratios of the mean bounded slowdowns of the jobs submitted in a week.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, jobset_interval
from cluster_env.worlds import get_spec
from tune_jobs.comparing.comparison import check_specs
from tune_jobs.comparing.policy_specs import split_names
from tune_jobs.comparing.protocol import EvaluationProtocol
from tune_jobs.comparing.trained_runs import find_runs
from tune_jobs.figures.kit.dots import draw_dots, name_lines
from tune_jobs.figures.registry import FigureRequest
from tune_jobs.figures.site_page import BUSY, PRICE, REFERENCE, page_of, read_sites
from tune_jobs.figures.site_units import MAX_WAIT, Contender, Found, Unit, find_all
from tune_jobs.figures.style import (
    TABLE_DPI,
    color_of,
    headline,
    marker_of,
    new_figure,
    plain_ticks,
    styled,
)
from tune_jobs.replaying.choices import WORLD
from tune_jobs.tables.frames import Row, write_table
from tune_jobs.terminal.files import digest
from tune_jobs.terminal.running import num_local_cpus
from tune_jobs.terminal.spreading import spreading

RULES = (
    *("fcfs:easy", "sjf:easy", "saf:easy", "wspt:easy", "f1:easy"),
    *("unicep:easy", "wfp3:easy", "priority:easy"),
    *("sjf:skip", "saf:skip", "wspt:skip", "saf:strict"),
)
"""Orders of the literature with EASY, three that never reserve, one that never backfills, and the
weighted sum of Slurm's sites. Conservative backfilling is left out: with thousands of waiting jobs
it takes hours."""

DEFAULT_BOUND = "x2"
KEPT, WEEKS = "sites.jsonl", "sites-weeks.csv"
_COLUMNS, _LINE, _HEAD = 3, 0.17, 0.75  # panels beside each other; inches
_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
_DIGITS = 4  # of weekly means in their file


def collect(request: FigureRequest) -> list[Row]:
    """Plays all logs under all rules, shipped policies and runs; see `site_page.NUMBERS`.

    A file beside the table keeps what each log gave under each policy, so that a call that was
    stopped goes on. Another gets the weekly means.

    Raises:
        InputError: if no log is named or can be used, a policy cannot act, or what was said of a
            machine names none of the logs.
    """
    options = dict(request.task_options)
    sizes = _sizes(str(options.pop("processors", "")))
    said = str(options.setdefault(MAX_WAIT, DEFAULT_BOUND))
    contenders = _contenders(request.runs)
    files = list(logs_of(request.traces))
    named = _by_name(files)
    _refuse_unknown(sizes, named)
    logs = [
        Unit(path, digest(path), tuple(request.overrides), _with_size(options, name, path, sizes))
        for name, path in named.items()
    ]
    kept = request.out / KEPT if request.out is not None else None
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
    count = num_local_cpus()
    with spreading(count if count > 1 else 0) as spread:
        described = find_all(logs, kept, spread, request.progress, "log")
        usable = []
        for name, unit, found in zip(named, logs, described, strict=True):
            if "reason" in found:
                request.progress.say(f"{unit.path.name} is left out: {found['reason']}")
            else:
                usable.append((name, unit, found))
        if not usable:
            raise InputError(f"none of {len(files)} files is a job log that can be played")
        # The longest first, so that no process is left with it at the end.
        usable.sort(key=lambda log: (-log[2]["jobs"], log[0]))
        _check(contenders, usable[-1][1])
        units = [
            _played(unit, found["max_wait"], contender)
            for _, unit, found in usable
            for contender in contenders
        ]
        results = find_all(units, kept, spread, request.progress, "replay")
    size = len(contenders)
    groups = {
        name: (unit, found, dict(zip(contenders, results[k * size : (k + 1) * size], strict=True)))
        for k, (name, unit, found) in enumerate(usable)
    }
    groups = dict(sorted(groups.items()))
    if request.out is not None:
        write_table(request.out / WEEKS, _weeks(groups))
    return [row for name, log in groups.items() for row in _rows(name, *log, said)]


def _sizes(text: str) -> dict[str, str]:
    """Processors by the name of a log, from ``NAME=N,...``; a number alone holds for all."""
    sizes = {}
    for part in filter(None, text.split(",")):
        name, is_named, count = part.rpartition("=")
        if not count.isdecimal() or not int(count) or (is_named and not name):
            raise InputError(f"--processors takes NAME=N,... or a number, not '{text}'")
        sizes[name] = count
    return sizes


def _refuse_unknown(sizes: Mapping[str, str], named: Mapping[str, Path]) -> None:
    known = {*named, *(path.name for path in named.values()), ""}
    for name in sizes.keys() - known:
        raise InputError(f"--processors names '{name}', but there is no such file of a log")


def _with_size(
    options: Mapping[str, Any], name: str, path: Path, sizes: Mapping[str, str]
) -> dict[str, str]:
    size = sizes.get(name) or sizes.get(path.name) or sizes.get("")
    given = {key: str(value) for key, value in options.items()}
    return given if size is None else {**given, "processors": size}


def logs_of(traces: Sequence[Path]) -> Iterator[Path]:
    """The files that were named, and those of the folders, by name; hidden ones are none."""
    if not traces:
        raise InputError("this figure shows job logs: name a folder of them with --trace FOLDER")
    for path in traces:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        yield from (one for one in inside if one.is_file() and not one.name.startswith("."))


def _by_name(files: Sequence[Path]) -> dict[str, Path]:
    """Files by their names up to the first point, or their whole names where these are the same."""
    short = [path.name.partition(".")[0] for path in files]
    return {
        name if short.count(name) == 1 else path.name: path
        for name, path in zip(short, files, strict=True)
    }


def _contenders(runs: Sequence[str]) -> list[Contender]:
    """The rules, the policies that ship for the world, and the runs that were named."""
    shipped = get_spec(WORLD).training.policies
    folders = {folder: name for name, folder in shipped.items()}
    folders |= {run: run.name for run in find_runs(split_names(runs)) if run not in folders}
    learned = [Contender(name, folder) for folder, name in folders.items()]
    return [*map(Contender, RULES), *learned]


def _check(contenders: Sequence[Contender], unit: Unit) -> None:
    """Finds out on one log whether all can act, before hours are spent."""
    task, _ = _played(unit, 0, contenders[0]).task()
    check_specs(EvaluationProtocol(task, num_jobsets=1), [one.spec() for one in contenders])


def _played(unit: Unit, max_wait: int, contender: Contender) -> Unit:
    """A log under a policy, at the bound in seconds that was found for the log."""
    options = {**unit.options, MAX_WAIT: f"{max_wait}s" if max_wait else "0"}
    return Unit(unit.path, unit.sha256, unit.overrides, options, contender)


def _weeks(groups: Mapping[str, tuple[Unit, Found, Mapping[Contender, Found]]]) -> pd.DataFrame:
    """Weekly mean bounded slowdowns: a row for each week of a log, a column for each policy."""
    frames = []
    for name, (_, found, played) in groups.items():
        jobs = found["week_jobs"]
        head = {"log": name, "week": range(1, len(jobs) + 1), "jobs": jobs}
        means = {one.name: np.round(result["weeks"], _DIGITS) for one, result in played.items()}
        frames.append(pd.DataFrame({**head, **means}))
    return pd.concat(frames)


def _rows(
    name: str, unit: Unit, found: Found, played: Mapping[Contender, Found], said: str
) -> Iterator[Row]:
    """The rows of a log: each policy relative to the rule with the lowest weekly slowdowns."""
    # Weeks without a job carry no information; all policies have the same ones.
    logs = {one: np.log(np.array(result["weeks"], float)) for one, result in played.items()}
    rules = [one for one in played if one.folder is None]
    best = min(rules, key=lambda one: float(np.nanmean(logs[one])))
    whole = {one: float(result["bounded_slowdown"]) for one, result in played.items()}
    best_whole = min(rules, key=whole.__getitem__)
    reference = next(one for one in rules if one.name == REFERENCE)
    head = {
        "log": name,
        "file": unit.path.name,
        "sha256": unit.sha256,
        **{key: found[key] for key in ("jobs", "left_out", "processors", "size_from")},
        **{key: found[key] for key in ("days", "load", "users", "max_wait")},
        "bound": said,
        "kind": "busy" if whole[reference] >= BUSY else "calm",
        "weeks": sum(count > 0 for count in found["week_jobs"]),
        "best_rule": best.name,
        "best_rule_whole": best_whole.name,
    }
    for one, result in played.items():
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
            **{key: result.get(key, np.nan) for key in PRICE},
        }


def draw(table: Path) -> Figure:
    """A panel for each log: ratios to its best rule with their intervals over weeks."""
    rows = read_sites(table)
    rows["color"], rows["marker"] = zip(*_looks(rows), strict=True)
    logs = list(rows.groupby("log", sort=False))
    # From best to worst, over all logs.
    means = np.log(rows["ratio"]).groupby(rows["policy"]).mean()
    policies = list(means.sort_values(kind="stable").index)
    columns = min(_COLUMNS, len(logs))
    lines = -(-len(logs) // columns)
    with styled():
        height = lines * (_HEAD + _LINE * len(policies)) + 1.0
        figure = new_figure(height, 2.5 + 2.5 * columns, TABLE_DPI)
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
        for axes, (log, own) in zip(panels, logs, strict=False):
            own = own.set_index("policy", drop=False).reindex(policies)
            first = own.iloc[0]
            axes.axvline(1, color="#8a8a8a", linewidth=0.8, zorder=1)
            draw_dots(axes, own, "ratio", size=4.5, width=1.5)
            axes.set_xscale("log")
            shown = own[["ratio", "ratio_low", "ratio_high"]]  # one week alone has no intervals
            low, high = np.nanmin(shown), np.nanmax(shown)
            axes.set_xlim(min(low, 0.8) * 0.93, max(high, 1.3) * 1.08)
            within = [tick for tick in _TICKS if low * 0.93 <= tick <= high * 1.08 or tick == 1]
            step = -(-len(within) // 6)
            at = within.index(1) % step
            plain_ticks(axes.xaxis, within[at::step])
            axes.tick_params(axis="x", labelsize=8)
            axes.set_title(f"{log} ({first['kind']}), best: {first['best_rule']}", fontsize=9)
        name_lines(panels[0], policies, size=8.5)
        for axes in panels:
            axes.tick_params(axis="y", labelsize=8.5, length=0)
            axes.grid(visible=False, axis="y")
        for axes in panels[len(logs) :]:
            axes.set_visible(False)
        note = (
            "mean bounded slowdown of the jobs of a week over that under the log's best rule, as "
            "a geometric mean over weeks; bars: paired 95% intervals over weeks. All at the same "
            f"bound on waits ({rows['bound'].iloc[0]}); the best rule is chosen on the same weeks"
        )
        headline(figure, "Rules and policies on real job logs", note)
    return figure


def _looks(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Color and marker of each row; backfilling tells rules of one order apart by their marker."""
    learned = list(dict.fromkeys(rows["policy"][rows["learned"] == "True"]))
    for _, row in rows.iterrows():
        is_learned = row["learned"] == "True"
        place = learned.index(row["policy"]) if is_learned else 0
        key = str(row["policy"]).partition(":")[0]
        yield color_of(key, is_learned, place), marker_of(key, is_learned, place)


explain = page_of
"""The page that is written beside the figure."""
