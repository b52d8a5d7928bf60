"""Comparisons and adaptations as tables in Markdown: each mean with its price beside it."""

from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.comparing.wording import described, jobs_in, kind_of_row, trained_on
from tune_jobs.terminal.tables import Cells, markdown, number, read_table

_NEEDED = ("metric", "policy", "learned", "jobsets", "utilization", "wait")
_ADAPTED = ("series", "family", "objective", "method", "step", "value", "value_low", "utilization")

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
    """The comparison of a CSV file, a table for each place or family; empty if it holds none.

    The line of the best mean, and those of which it cannot be told apart, are bold.
    """
    with suppress(InputError):
        return _joined(read_table(table, _NEEDED), _place, _block)
    with suppress(InputError):
        return _joined(sorted(read_table(table, _ADAPTED), key=_family), _family, _adaptation)
    return ""


def _joined(
    rows: list[Cells], place: Callable[[Cells], str], block: Callable[[list[Cells]], str]
) -> str:
    return "\n\n".join(block(list(some)) for _, some in groupby(rows, place))


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


def _family(row: Cells) -> str:
    """Of which tasks a row of adaptation is."""
    return ": ".join(name for name in (row["family"], row["objective"].replace("_", " ")) if name)


def _adaptation(rows: list[Cells]) -> str:
    """A line for each method, with its mean after so many steps and the price after the most."""
    shown = [name for name in COLUMNS if name != "unfinished" and rows[0].get(name)]
    methods = [row for row in rows if row["series"] == "method"]
    steps = sorted({int(number(row, "step")) for row in methods})
    titles = [f"After {step} step{'s' * (step != 1)}" for step in steps] + [
        COLUMNS[one][0] for one in shown
    ]
    lines = [["Method", *titles]]
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        after = {int(number(row, "step")): _ratio(row) for row in mine if row["step"]}
        costs = [after.get(step, "") for step in steps] if after else [_ratio(mine[0])]
        costs += [""] * (len(steps) - len(costs))
        price = [COLUMNS[one][1](number(mine[-1], one)) for one in shown]
        lines.append([_with_counts(mine[0]), *costs, *price])
    what = "cost over that of the best baseline on each task; the rest after the most steps"
    return f"{_family(rows[0])}, {what}:\n\n{markdown(lines, names=1)}"


def _with_counts(row: Cells) -> str:
    name = row["method"].replace("*", r"\*")
    return f"{name}, {row['seeds']} x {row['adaptations']}" if row.get("seeds") else name


def _ratio(row: Cells) -> str:
    if not row["value_low"]:
        return f"{number(row, 'value'):.3f}"
    low, high = number(row, "value_low"), number(row, "value_high")
    return f"{number(row, 'value'):.3f} [{low:.3f}, {high:.3f}]"


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
