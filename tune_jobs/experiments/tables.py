"""Comparisons as tables in Markdown: each mean with its price beside it."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.comparing.wording import described, jobs_in, kind_of_row, trained_on
from tune_jobs.terminal.tables import Cells, markdown, number, read_table

_NEEDED = ("metric", "policy", "learned", "jobsets", "utilization", "wait")

COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "utilization": ("Utilization", "{:.1%}".format),
    "completion_time": ("Mean completion", "{:.1f}".format),
    "wait": ("Mean wait", "{:.1f}".format),
    "longest_wait": ("Longest wait", "{:.0f}".format),
    "slowdown_small": ("Slowdown of short jobs", "{:.2f}".format),
    "slowdown_large": ("of long jobs", "{:.2f}".format),
    "largest_slowdown": ("Largest slowdown", "{:.1f}".format),
    "unfinished": ("Unfinished", "{:,.0f}".format),
}
"""Columns behind the mean, as far as a table has them: title, and how a value is written."""


def markdown_of(table: Path) -> str:
    """The comparison of a CSV file, a table for each place; empty if it holds none.

    The line of the best mean, and those of which it cannot be told apart, are bold.
    """
    try:
        rows = read_table(table, _NEEDED)
    except InputError:
        return ""
    blocks = [_block(list(some)) for _, some in groupby(rows, _place)]
    return "\n\n".join(blocks)


def _place(row: Cells) -> str:
    """What a row rests on, in words."""
    given = row.get("place") or ""
    jobs, details = jobs_in(row), described(row)
    named = f"{given} ({details})" if given else f"{jobs}; {details}"
    return f"{named[:1].upper()}{named[1:]}; {float(row['jobsets']):,.0f} jobsets"


def _block(rows: list[Cells]) -> str:
    kind, metric = kind_of_row(rows[0]), rows[0]["metric"]
    shown = [name for name in COLUMNS if rows[0].get(name) and name != metric]
    if not any(number(row, "unfinished") for row in rows):
        shown = [name for name in shown if name != "unfinished"]
    names = "" if metric == kind.headline else f" ({metric})"
    titles = [COLUMNS[one][0] for one in shown]
    lines = [["Policy", f"Mean {kind.headline}{names} [95 %]", *titles, "Above the best, in pairs"]]
    for row in rows:
        cells = [COLUMNS[one][1](number(row, one)) for one in shown]
        lines.append([_name(row), _mean(row, metric), *cells, _difference(row)])
    return f"{_place(rows[0])}:\n\n{markdown(lines, names=1)}"


def _name(row: Cells) -> str:
    if row["learned"] != "True":
        return row["policy"].replace("*", r"\*")
    seeds = int(number(row, "seeds"))
    count = f", {seeds} seeds" if seeds > 1 else ""
    return f"`{row['policy']}`, {trained_on(row)}{count}"


def _mean(row: Cells, metric: str) -> str:
    low, high = number(row, f"{metric}_low"), number(row, f"{metric}_high")
    value = f"{number(row, metric):.2f}"
    tied = number(row, "difference_low") <= 0 <= number(row, "difference_high")
    best = row.get("best") == "True" or tied
    return f"{f'**{value}**' if best else value} [{low:.2f}, {high:.2f}]"


def _difference(row: Cells) -> str:
    """How much worse than the best on the same jobsets, with its interval."""
    value, low, high = (number(row, f"difference{end}") for end in ("", "_low", "_high"))
    return "" if row.get("best") == "True" else f"{value:.2f} [{low:.2f}, {high:.2f}]"
