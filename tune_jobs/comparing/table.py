"""A comparison as text for a terminal."""

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import click

from tune_jobs.comparing.policy_specs import learned_name
from tune_jobs.comparing.wording import described, jobs_in, kind_of_row, trained_on, value_of
from tune_jobs.terminal.tables import Row, aligned


def _number(value: object, digits: int) -> str:
    number = float(str(value))
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "slowdown": ("slowdown", lambda value: _number(value, 2)),
    "slowdown_small": ("small", lambda value: _number(value, 2)),
    "slowdown_large": ("large", lambda value: _number(value, 2)),
    "slowdown_p95": ("p95", lambda value: _number(value, 1)),
    "within_2": ("<=2", _share),
    "completion_time": ("completion", lambda value: _number(value, 1)),
    "makespan": ("makespan", lambda value: _number(value, 1)),
    "utilization": ("utilization", _share),
    "win_rate": ("win rate", _share),
}
"""Columns of the table behind the one that decides, as far as the world has them: title, and how a
value is written."""


def format_rows(rows: Sequence[Row]) -> str:
    """The rows as text: one block for each place of the axis, and what its columns mean."""
    blocks = [_block(list(block)) for _, block in groupby(rows, lambda row: str(value_of(row)))]
    return "\n\n".join([*blocks, _legend(rows)])


def _block(rows: Sequence[Row]) -> str:
    first = rows[0]
    metric = str(first["metric"])
    others = [name for name in COLUMNS if name != metric and name in first]
    digits = 3 if metric == "utilization" else 2
    titles = [COLUMNS[name][0] for name in others]
    table = [["", "policy", f"{metric} [95%]", *titles, "unfinished"]]
    for row in rows:
        value, low, high = (_number(row[f"{metric}{end}"], digits) for end in ("", "_low", "_high"))
        cells = [COLUMNS[name][1](float(row[name])) for name in others]
        interval = f"{value} [{low}, {high}]"
        table.append([_mark(row), _name(row), interval, *cells, f"{float(row['unfinished']):,.4g}"])
    episodes = f" x {first['episodes']} episodes" if first["episodes"] != 1 else ""
    jobs, details = jobs_in(first), described(first)
    title = (
        f"{jobs[:1].upper()}{jobs[1:]}: {first['jobsets']:,} unseen jobsets{episodes}, "
        f"{float(first['num_jobs']):,.0f} jobs{'; ' if details else ''}{details}"
    )
    return "\n".join([click.style(title, bold=True), *aligned(table, names=2)])


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


def _legend(rows: Sequence[Row]) -> str:
    lines = ["> best mean; ~ not to be told from it: the 95% interval of the difference holds 0."]
    over = {row["interval_over"] for row in rows}
    if over - {"nothing"}:
        lines.append("Intervals are bootstrapped over jobsets; means pool all jobs of all jobsets.")
    if "seeds and jobsets" in over:
        lines.append("Of several training seeds: mean over seeds, interval over seeds and jobsets.")
    if any(str(row["policy"]).partition("*")[1] for row in rows):
        lines.append("The star: the best number of a sweep on validation jobsets of the same task.")
    if any(not math.isnan(float(row["win_rate"])) for row in rows):
        *some, last = kind_of_row(rows[0]).baselines
        lines.append(
            f"win rate: share of jobsets on which a policy is at least as good as the best of "
            f"{', '.join(some)}{' and ' if some else ''}{last}, as far as they are compared."
        )
    if any(float(row["warmup"]) for row in rows):
        lines.append(
            "Jobs outside these steps were served but do not count; makespan and utilization are "
            "those of whole episodes."
        )
    guarded = [row for row in rows if row.get("guard_choice")]
    if guarded:
        seconds = sorted(float(row["guard_s"]) for row in guarded)
        lines.append(
            f"guarded: the learned policy where {guarded[0]['guard_jobsets']} validation jobsets "
            f"prove it better than the best heuristic, elsewhere that heuristic (-> says which); "
            f"deciding took {seconds[0]:.1f} to {seconds[-1]:.1f} s."
        )
    if any(float(row["unfinished"]) for row in rows):
        lines.append(
            "Unfinished jobs count with the time they had spent when their episode was cut: "
            "means with any are lower bounds."
        )
    return "\n".join([*lines, *kind_of_row(rows[0]).remarks(rows)])
