"""A comparison as text for a terminal, and what stands beside its metric everywhere."""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import click

from cluster_env.core.errors import InputError
from cluster_env.evaluation import MIN_DISJOINT, by_size, get_metric
from cluster_env.worlds import WorldSpec
from tune_jobs.measuring.policy_specs import learned_name
from tune_jobs.measuring.protocol import UNSEEN
from tune_jobs.measuring.wording import (
    described,
    jobs_in,
    number_in,
    spec_of_row,
    trained_on,
    value_of,
)
from tune_jobs.tables.columns import SHARE, TIME, Time, column, share_with_interval, with_interval
from tune_jobs.tables.frames import Row, Value
from tune_jobs.tables.printing import WIDTH, aligned, folded, title_case, width_of

COMPARED = (
    *("utilization", "wait", "longest_wait", "utilization_to_end"),
    *("bounded_slowdown_narrow", "bounded_slowdown_medium", "bounded_slowdown_wide"),
    *("slowdown", "slowdown_small", "slowdown_large"),
    *("largest_slowdown", "slowdown_p95", "within_2"),
    *("completion_time", "completion_p95", "longest_completion", "least_completion"),
    *("completion_time_narrow", "completion_time_medium", "completion_time_wide"),
    *("makespan", "win_rate"),
)
"""Columns behind the one that decides, as far as the world has them."""

_LAST = ("completion_time", "largest_slowdown")
_ALWAYS = (
    *("utilization", "utilization_to_end", "wait", "longest_wait", "longest_completion"),
    *("completion_p95", "makespan"),
)
_LONGEST_TITLE = 20


def times_of(world_spec: WorldSpec) -> tuple[Time, str]:
    """How a world writes times, and their unit for the head, unless each has its own."""
    shown = world_spec.presentation
    in_cells = any(map(str.isalpha, shown.time(1.0)))
    return shown.time, "" if in_cells else shown.time_unit


def heads_of(world_spec: WorldSpec, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Heads of columns, and below them the unit of times, unless each cell has its own."""
    _, unit = times_of(world_spec)
    columns = [column(name) for name in names]
    return [one.head for one in columns], [unit if one.unit == TIME else "" for one in columns]


def label_of(row: Mapping[str, object], metric: str) -> str:
    """What a metric is, with the unit of the world's times."""
    unit = spec_of_row(row).presentation.time_unit
    return get_metric(metric).label.replace("steps", unit)


def beside(row: Mapping[str, object]) -> list[str]:
    """Names of what belongs beside the metric of a row, wherever there is room for it.

    That is the headline of its world, if another metric decides; utilization in the arrival window
    and to the last finish, mean and longest wait, makespan; the headline by size of jobs; mean
    completion time and largest slowdown.
    """
    world_spec = spec_of_row(row)
    sizes = by_size(world_spec.headline, dict.fromkeys(COMPARED))
    names = (world_spec.headline, *_ALWAYS, *sizes, *_LAST)
    return [name for name in names if name in row and name != row["metric"]]


def few_windows(row: Mapping[str, object]) -> bool:
    """Whether a log has room for too few windows side by side to show who is better."""
    return number_in(row.get("disjoint_windows")) < MIN_DISJOINT


def format_rows(rows: Sequence[Row], wide: bool = False, bold: bool = False) -> str:
    """The rows as text: one block for each place of the axis, and what its columns mean.

    Args:
        rows: of a comparison.
        wide: whether to show all columns; else the side metrics, and of what else belongs beside
            the metric as much as the terminal has room for.
        bold: whether headings have a terminal's mark for bold, which does not belong into files.

    Raises:
        InputError: if there are no rows.
    """
    if not rows:
        raise InputError("there is no row to show")
    room = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    blocks = blocks_of(rows)
    names = _columns(rows[0]) if wide else _that_fit(blocks, room)
    texts = []
    for block in blocks:
        lines = aligned(_lines(block, names, wide), names=2, width=0 if wide else room)
        heading = click.style(heading_of(block[0]), bold=True) if bold else heading_of(block[0])
        texts.append("\n".join([heading, *lines]))
    legend = legend_of(rows, names, wide)
    if not all(map(few_windows, rows)):
        legend.insert(
            0,
            "> best mean; ~ not significantly different: the 95% interval of the difference "
            "includes 0.",
        )
    return "\n\n".join([*texts, "\n".join(folded(legend, room))])


def blocks_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each place of the axis and protocol."""

    def block_of(row: Row) -> tuple[str, str]:
        return str(value_of(row)), _protocol(row)

    return [list(block) for _, block in groupby(rows, block_of)]


def heading_of(first: Row) -> str:
    """What the rows of a block rest on."""
    episodes = f" x {first['episodes']} episodes" if float(first["episodes"]) != 1 else ""
    details = described(first)
    unseen = "unseen " if _protocol(first) == UNSEEN else ""
    return (
        f"{title_case(jobs_in(first))}: {float(first['jobsets']):,.0f} {unseen}jobsets{episodes}, "
        f"{float(first['num_jobs']):,.0f} jobs{'; ' if details else ''}{details}"
    )


def _protocol(row: Row) -> str:
    return str(row.get("protocol") or UNSEEN)


def policy_lines(
    world_spec: WorldSpec,
    metric: str,
    names: Sequence[str],
    policies: Iterable[tuple[str, str, str, Mapping[str, Value]]],
) -> list[list[str]]:
    """Policies as cells: the head, a line of units where there are any, and a line for each.

    Args:
        world_spec: of the world that they act in.
        metric: that decides who is best.
        names: columns behind it.
        policies: a mark, the name, the mean with its interval, and what stands in the columns.
    """
    time, (heads, below) = times_of(world_spec)[0], heads_of(world_spec, names)
    own = world_spec.presentation.time_unit if column(metric).unit == TIME else ""
    lines = [["", "policy", _title(metric), *heads]]
    lines += [["", "", own, *below]] if any((own, *below)) else []
    for *texts, means in policies:
        cells = (column(name).write(float(means[name]), time) for name in names)
        lines.append([*map(str, texts), *cells])
    return lines


def _lines(rows: Sequence[Row], names: Sequence[str], wide: bool) -> list[list[str]]:
    """Cells of a block."""
    metric = str(rows[0]["metric"])
    cut = wide or any(float(row["unfinished"]) for row in rows)
    return policy_lines(
        spec_of_row(rows[0]),
        metric,
        [*names, *(["unfinished"] if cut else [])],
        ((_mark(row), _name(row), interval_of(row, metric), row) for row in rows),
    )


def interval_of(row: Mapping[str, object], name: str, digits: int = 2) -> str:
    """What stands in a column, with its interval if there is one; shares are in per cent."""
    ends = [number_in(row.get(f"{name}{end}")) for end in ("", "_low", "_high")]
    return share_with_interval(ends) if column(name).unit == SHARE else with_interval(ends, digits)


def _columns(row: Row) -> list[str]:
    """Names of all columns behind the one that decides."""
    names = dict.fromkeys((*COMPARED, spec_of_row(row).headline))
    return [name for name in names if name in row and name != row["metric"]]


def _that_fit(blocks: Sequence[Sequence[Row]], room: int) -> list[str]:
    """Names of columns: side metrics, and what else belongs there while rows fit into a line."""
    first = blocks[0][0]
    side = spec_of_row(first).side_metrics
    chosen = [name for name in _columns(first) if name in side]
    for name in beside(first):
        more = [one for one in _columns(first) if one in (*chosen, name)]
        if max(width_of(_lines(block, more, wide=False)) for block in blocks) > room:
            break
        chosen = more
    return chosen


def _title(metric: str) -> str:
    title = f"{column(metric).head} [95%]"
    return title if len(title) <= _LONGEST_TITLE else "objective [95%]"


def _mark(row: Row) -> str:
    if few_windows(row):
        return ""
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


def legend_of(rows: Sequence[Row], shown: Sequence[str], wide: bool) -> list[str]:
    """Sentences about what the columns of rows mean, beside the marks."""
    metric = str(rows[0]["metric"])
    title = _title(metric).partition(" ")[0]
    lines = [] if title == metric else [f"{title}: {label_of(rows[0], metric)}."]
    if "wait" in shown:
        lines.append("wait: mean over jobs; longest: mean of each episode's longest wait.")
    if "utilization_to_end" in shown:
        lines.append("util: while jobs arrive; to end: up to the last finish.")
    if "bounded_slowdown_narrow" in shown:
        lines.append(
            "narrow, medium, wide: bounded slowdown of jobs of at most a sixteenth of the machine, "
            "at most a quarter, and more."
        )
    over = {row["interval_over"] for row in rows}
    windows = [number_in(row.get("disjoint_windows")) for row in rows]
    if known := [int(one) for one in windows if not math.isnan(one)]:
        lines.append(about_windows(min(known)))
    elif over - {"nothing"}:
        lines.append(
            "Intervals: 95% bootstrap over jobsets; means are over all jobs of all jobsets."
        )
    if "seeds and jobsets" in over:
        lines.append("Several training seeds: mean over seeds, interval over seeds and jobsets.")
    if any("*" in str(row["policy"]) for row in rows):
        lines.append("*: the parameter that was best on validation jobsets of the same task.")
    if wide and any(not math.isnan(float(row["win_rate"])) for row in rows):
        *some, last = spec_of_row(rows[0]).baselines
        lines.append(
            "win rate: share of jobsets on which a policy is at least as good as the best "
            f"compared one of {', '.join(some)}{' and ' if some else ''}{last}."
        )
    if any(float(row["warmup"]) for row in rows):
        lines.append(
            "Jobs outside these steps were scheduled but do not count; makespan, "
            "utilization and longest waits are of whole episodes."
        )
    told = {str(row["key"]): str(row["told"]) for row in rows if row.get("told")}
    lines += [f"{learned_name(key)} was conditioned on: {words}." for key, words in told.items()]
    guarded = [row for row in rows if row.get("guard_choice")]
    if guarded:
        seconds = sorted(float(row["guard_s"]) for row in guarded)
        lines.append(
            f"guarded: the learned policy where {guarded[0]['guard_jobsets']} validation "
            "jobsets prove it better than the best heuristic and within the limits of side "
            "metrics (see metasched compare --help), otherwise that heuristic (named after ->); "
            f"deciding took {seconds[0]:.1f} to {seconds[-1]:.1f} s."
        )
    if any(float(row["unfinished"]) for row in rows):
        lines.append(
            "Unfinished jobs count with the time until their episode was cut off, so means "
            "with any are lower bounds."
        )
    return [*lines, *spec_of_row(rows[0]).presentation.remarks(rows)]


def about_windows(num_disjoint: int) -> str:
    """What windows of a log are worth, where a comparison or a guard shows means over them."""
    words = f"Windows of a log overlap: only {num_disjoint:,} of these share no job"
    if num_disjoint < MIN_DISJOINT:
        return f"{words}, and fewer than {MIN_DISJOINT} allow neither intervals nor a ranking."
    return f"{words}, and the intervals account for this."
