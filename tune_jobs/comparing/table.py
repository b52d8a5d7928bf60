"""A comparison as text for a terminal."""

import math
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import click

from cluster_env.evaluation import by_size, get_metric
from tune_jobs.comparing.policy_specs import learned_name
from tune_jobs.comparing.protocol import UNSEEN
from tune_jobs.comparing.wording import described, jobs_in, spec_of_row, trained_on, value_of
from tune_jobs.terminal.tables import Row, aligned, markdown


def _number(value: object, digits: int) -> str:
    number = float(str(value))
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "utilization": ("util", _share),
    "wait": ("wait", lambda value: _number(value, 1)),
    "longest_wait": ("longest", lambda value: _number(value, 1)),
    "utilization_to_end": ("to end", _share),
    "bounded_slowdown_narrow": ("narrow", lambda value: _number(value, 2)),
    "bounded_slowdown_medium": ("medium", lambda value: _number(value, 2)),
    "bounded_slowdown_wide": ("wide", lambda value: _number(value, 2)),
    "slowdown": ("slowdown", lambda value: _number(value, 2)),
    "slowdown_small": ("small", lambda value: _number(value, 2)),
    "slowdown_large": ("large", lambda value: _number(value, 2)),
    "largest_slowdown": ("largest", lambda value: _number(value, 1)),
    "slowdown_p95": ("p95", lambda value: _number(value, 1)),
    "within_2": ("<=2", _share),
    "completion_time": ("completion", lambda value: _number(value, 1)),
    "makespan": ("makespan", lambda value: _number(value, 1)),
    "win_rate": ("win rate", _share),
}
"""Columns of the table behind the one that decides, as far as the world has them: title, and how a
value is written."""

TIMES = ("wait", "longest_wait", "makespan", "completion_time")
"""Columns that are times of the world."""

_LAST = ("completion_time", "largest_slowdown")
_ALWAYS = ("utilization", "utilization_to_end", "wait", "longest_wait", "makespan")

WIDTH = 80
"""Columns of a terminal that rows fit into, unless they are to be wide."""
_LONGEST_TITLE, _SHORTEST_NAME = 20, 12


def column_of(metric: str) -> tuple[str, Callable[[float], str]]:
    """Title of a metric's column, and how its values are written."""
    return COLUMNS.get(metric, (metric, "{:.3g}".format))


def beside(row: Mapping[str, object]) -> list[str]:
    """Names of what belongs beside the metric of a row, wherever there is room for it.

    That is the headline of its world, if another metric decides; utilization in the arrival window
    and to the last finish, mean and longest wait, makespan; the headline by size of jobs; mean
    completion time and largest slowdown.
    """
    world_spec = spec_of_row(row)
    names = (world_spec.headline, *_ALWAYS, *by_size(world_spec.headline, COLUMNS), *_LAST)
    return [name for name in names if name in row and name != row["metric"]]


def format_rows(rows: Sequence[Row], wide: bool = False) -> str:
    """The rows as text: one block for each place of the axis, and what its columns mean.

    Args:
        rows: of a comparison.
        wide: whether to show all of `COLUMNS`; else the side metrics, and of what else
            belongs beside it as much as the terminal has room for.
    """
    room = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    names = _columns(rows[0]) if wide else _that_fit(list(_blocks(rows)), room)
    blocks = []
    for block in _blocks(rows):
        table = _cells(block, names, wide)
        lines = aligned(table if wide else _narrow(table, room), names=2)
        blocks.append("\n".join([click.style(_heading(block[0]), bold=True), *lines]))
    return "\n\n".join([*blocks, _legend(rows, names, wide)])


def markdown_rows(rows: Sequence[Row]) -> str:
    """The rows with all that belongs beside their metric, in Markdown."""
    names = beside(rows[0])
    blocks = [
        f"**{_heading(block[0])}**\n\n{markdown(_cells(block, names, wide=False), names=2)}"
        for block in _blocks(rows)
    ]
    legend = _legend(rows, names, False).splitlines()
    return "\n\n".join([*blocks, "\n".join(f"- {line}" for line in legend).replace("- >", r"- \>")])


def _blocks(rows: Sequence[Row]) -> list[list[Row]]:
    return [list(block) for _, block in groupby(rows, _block_of)]


def _block_of(row: Row) -> tuple[str, str]:
    return str(value_of(row)), str(row.get("protocol") or UNSEEN)


def _cells(rows: Sequence[Row], names: Sequence[str], wide: bool) -> list[list[str]]:
    """Cells of a block, the head first."""
    heads = [column_of(name)[0] for name in names]
    table = [["", "policy", _title(str(rows[0]["metric"])), *heads]]
    cut = wide or any(float(row["unfinished"]) for row in rows)
    for row in rows:
        cells = [column_of(name)[1](float(row[name])) for name in names]
        table.append([_mark(row), _name(row), _interval(row), *cells])
    if cut:
        ends = ("unfinished", *(f"{float(row['unfinished']):,.4g}" for row in rows))
        table = [[*line, end] for line, end in zip(table, ends, strict=True)]
    return table


def _heading(first: Row) -> str:
    episodes = f" x {first['episodes']} episodes" if first["episodes"] != 1 else ""
    jobs, details = jobs_in(first), described(first)
    unseen = "unseen " if _block_of(first)[1] == UNSEEN else ""
    return (
        f"{jobs[:1].upper()}{jobs[1:]}: {first['jobsets']:,} {unseen}jobsets{episodes}, "
        f"{float(first['num_jobs']):,.0f} jobs{'; ' if details else ''}{details}"
    )


def _columns(row: Row) -> list[str]:
    """Names of all columns behind the one that decides."""
    return [name for name in COLUMNS if name in row and name != row["metric"]]


def _that_fit(blocks: Sequence[Sequence[Row]], room: int) -> list[str]:
    """Names of columns: side metrics, and what else belongs there while rows fit into a line."""
    first = blocks[0][0]
    side = spec_of_row(first).side_metrics
    chosen = [name for name in _columns(first) if name in side]
    for name in beside(first):
        more = [one for one in _columns(first) if one in (*chosen, name)]
        tables = [_cells(block, more, wide=False) for block in blocks]
        if (
            name in more
            and max(len(line) for one in tables for line in aligned(one, names=2)) > room
        ):
            break
        chosen = more
    return chosen


def _title(metric: str) -> str:
    title = f"{metric} [95%]"
    return title if len(title) <= _LONGEST_TITLE else "objective [95%]"


def _interval(row: Row) -> str:
    metric = str(row["metric"])
    digits = 3 if metric == "utilization" else 2
    value, low, high = (_number(row[f"{metric}{end}"], digits) for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def _narrow(table: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The table with names that go on in a second line where it would be too wide."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = max(_SHORTEST_NAME, width - sum(widths) - 2 * (len(widths) - 1) + widths[1])
    lines = []
    for mark, name, *cells in table:
        begin, *rest = textwrap.wrap(name, room, subsequent_indent="  ")
        lines.append([mark, begin, *cells])
        lines += [["", more, *[""] * len(cells)] for more in rest]
    return lines


def _mark(row: Row) -> str:
    """``>`` for the best, ``~`` for what cannot be told from it."""
    if row["best"]:
        return ">"
    low, high = float(row["difference_low"]), float(row["difference_high"])
    return "~" if low <= 0 <= high else ""


def _name(row: Row) -> str:
    if not row["learned"]:
        return str(row["policy"])
    seeds = f", {row['seeds']} seeds" if int(row["seeds"]) > 1 else ""
    choice = f" -> {row['guard_choice']}" if row.get("guard_choice") else ""
    return f"{learned_name(str(row['key']))} ({trained_on(row)}{seeds}){choice}"


def _legend(rows: Sequence[Row], shown: Sequence[str], wide: bool) -> str:
    metric = str(rows[0]["metric"])
    lines = [] if metric in _title(metric) else [f"objective: {get_metric(metric).label}."]
    if "wait" in shown:
        lines.append("wait: mean over jobs; longest: mean of each episode's longest wait.")
    if "utilization_to_end" in shown:
        lines.append("util: while jobs arrive; to end: up to the last finish.")
    if "bounded_slowdown_narrow" in shown:
        lines.append(
            "narrow, medium, wide: bounded slowdown of jobs of at most a sixteenth of the machine, "
            "at most a quarter, and more."
        )
    lines += ["> best mean; ~ not to be told from it: the 95% interval of the difference holds 0."]
    over = {row["interval_over"] for row in rows}
    if over - {"nothing"}:
        lines.append("Intervals are bootstrapped over jobsets; means pool all jobs of all jobsets.")
    if "seeds and jobsets" in over:
        lines.append("Of several training seeds: mean over seeds, interval over seeds and jobsets.")
    if any(str(row["policy"]).partition("*")[1] for row in rows):
        lines.append("The star: the best number of a sweep on validation jobsets of the same task.")
    if wide and any(not math.isnan(float(row["win_rate"])) for row in rows):
        *some, last = spec_of_row(rows[0]).baselines
        lines.append(
            f"win rate: share of jobsets on which a policy is at least as good as the best of "
            f"{', '.join(some)}{' and ' if some else ''}{last}, as far as they are compared."
        )
    if any(float(row["warmup"]) for row in rows):
        lines.append(
            "Jobs outside these steps were served but do not count; makespan, utilization and "
            "longest waits are those of whole episodes."
        )
    told = {str(row["key"]): str(row["told"]) for row in rows if row.get("told")}
    lines += [f"{learned_name(key)} was told: {words}." for key, words in told.items()]
    guarded = [row for row in rows if row.get("guard_choice")]
    if guarded:
        seconds = sorted(float(row["guard_s"]) for row in guarded)
        lines.append(
            f"guarded: the learned policy where {guarded[0]['guard_jobsets']} validation jobsets "
            f"prove it better than the best heuristic, and not too dear (see metasched guard), "
            f"elsewhere that heuristic (-> says which); "
            f"deciding took {seconds[0]:.1f} to {seconds[-1]:.1f} s."
        )
    if any(float(row["unfinished"]) for row in rows):
        lines.append(
            "Unfinished jobs count with the time they had spent when their episode was cut: "
            "means with any are lower bounds."
        )
    return "\n".join([*lines, *spec_of_row(rows[0]).presentation.remarks(rows)])
