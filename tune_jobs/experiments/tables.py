"""Tables of figures and comparisons in Markdown: each mean with side metrics beside it."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.comparing.wording import described, jobs_in, spec_of_row, trained_on
from tune_jobs.terminal.tables import Cells, markdown, number, read_table

_POLICY = ("metric", "policy", "learned", "jobsets", "utilization")
_ADAPTED = ("series", "family", "objective", "method", "step", "value", "value_low", "utilization")
_CLOSED = ("family", "method", "step", "value", "closed", "tasks", "utilization")
_WIN_RATE = "win-rate"

COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "utilization": ("Utilization", "{:.1%}".format),
    "completion_time": ("Mean completion", "{:.1f}".format),
    "wait": ("Mean wait", "{:.1f}".format),
    "longest_wait": ("Longest wait", "{:.0f}".format),
    "slowdown_small": ("Slowdown of short jobs", "{:.2f}".format),
    "slowdown_large": ("of long jobs", "{:.2f}".format),
    "bounded_slowdown_narrow": ("Of narrow jobs", "{:.2f}".format),
    "bounded_slowdown_medium": ("of medium ones", "{:.2f}".format),
    "bounded_slowdown_wide": ("of wide ones", "{:.2f}".format),
    "largest_slowdown": ("Largest slowdown", "{:.1f}".format),
    "unfinished": ("Unfinished", "{:,.0f}".format),
}
"""Columns behind the mean, as far as a table has them: title, and how a value is written."""

Numbers = dict[str, Callable[[Cells], str]]
"""Columns before and behind the side metrics: title, and what stands in a row."""


@dataclass(frozen=True)
class Layout:
    """How the policies of a figure stand in a table.

    Attributes:
        columns: by which its CSV file is known, beside those of all tables of policies.
        first: numbers before the side metrics, behind the mean by the metric of the rows.
        last: numbers behind the side metrics.
        kept: a column and what stands in it, if some rows alone are of policies.
        mean: columns of the mean, and beginning of those of its interval; the metric's if empty.
    """

    columns: tuple[str, ...]
    first: Numbers
    last: Numbers
    kept: tuple[str, str] | None = None
    mean: str = "value"


def markdown_of(table: Path) -> str:
    """The table of a CSV file, one for each place or family; empty if it is none that is known.

    The line of the best mean, and those of which it cannot be told apart, are bold.
    """
    for layout in (_COMPARED, _GAP, _OBJECTIVES, _WITHHELD, _RATIOS):
        with suppress(InputError):
            rows = read_table(table, (*_POLICY, *layout.columns))
            if layout is _COMPARED and table.stem == _WIN_RATE:
                layout = _WON
            if layout.kept is not None:
                column, text = layout.kept
                rows = [row for row in rows if row[column] == text]
            return _joined(rows, _place, partial(_block, layout))
    with suppress(InputError):
        return _joined(sorted(read_table(table, _ADAPTED), key=_family), _family, _adaptation)
    with suppress(InputError):
        return _joined(read_table(table, _CLOSED), _tasks, _headroom)
    return ""


def _joined(
    rows: list[Cells], place: Callable[[Cells], str], block: Callable[[list[Cells]], str]
) -> str:
    return "\n\n".join(block(list(some)) for _, some in groupby(rows, place))


def _place(row: Cells) -> str:
    """What a row rests on, in words."""
    given = row.get("place") or ""
    jobs, details = jobs_in(row), described(row)
    inside = f" ({details})" if details else ""
    named = f"{given}{inside}" if given else "; ".join(filter(None, (jobs, details)))
    metric = "" if row["metric"] == spec_of_row(row).headline else f"; by {row['metric']}"
    varied = "".join(f"; {name} {text}" for name, text in _in_front(row).items())
    return f"{named[:1].upper()}{named[1:]}; {float(row['jobsets']):,.0f} jobsets{metric}{varied}"


def _in_front(row: Cells) -> Cells:
    """What `metasched join` has put in front of the columns of a comparison."""
    axis = spec_of_row(row).presentation.axis
    first = axis.name if axis is not None and axis.name in row else "metric"
    before = takewhile(lambda name: name not in (first, "exhibit", "place"), row)
    return {name: row[name] for name in before}


def _block(layout: Layout, rows: list[Cells]) -> str:
    metric = rows[0]["metric"]
    first: Numbers = {
        f"Mean {metric} [95 %]": lambda row: _mean(row, layout.mean or metric),
        **layout.first,
    }
    side = _side_metrics(rows, metric)
    lines = [["Policy", *first, *(COLUMNS[one][0] for one in side), *layout.last]]
    for row in rows:
        cells = [COLUMNS[one][1](number(row, one)) for one in side]
        before, behind = ([one(row) for one in some.values()] for some in (first, layout.last))
        lines.append([_name(row), *before, *cells, *behind])
    return f"{_place(rows[0])}:\n\n{markdown(lines, names=1)}"


def _side_metrics(rows: Sequence[Cells], metric: str = "") -> list[str]:
    """Names of the columns of side metrics; unfinished jobs where there are any."""
    shown = [name for name in COLUMNS if rows[0].get(name) and name != metric]
    if not any(number(row, "unfinished") for row in rows):
        shown = [name for name in shown if name != "unfinished"]
    return shown


def _family(row: Cells) -> str:
    """Of which tasks a row of adaptation is."""
    return ": ".join(name for name in (row["family"], row["objective"].replace("_", " ")) if name)


def _adaptation(rows: list[Cells]) -> str:
    """A line for each method, with its mean after so many steps and side metrics after the most."""
    shown = [name for name in COLUMNS if name != "unfinished" and rows[0].get(name)]
    methods = [row for row in rows if row["series"] == "method"]
    steps = sorted({int(number(row, "step")) for row in methods})
    titles = [f"After {step} step{'s' * (step != 1)}" for step in steps] + [
        COLUMNS[one][0] for one in shown
    ]
    lines = [["Method", *titles]]
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        after = {
            int(number(row, "step")): _interval(row, "value", 3) for row in mine if row["step"]
        }
        costs = (
            [after.get(step, "") for step in steps] if after else [_interval(mine[0], "value", 3)]
        )
        costs += [""] * (len(steps) - len(costs))
        side = [COLUMNS[one][1](number(mine[-1], one)) for one in shown]
        lines.append([_with_counts(mine[0]), *costs, *side])
    what = "cost over that of the best baseline on each task; the rest after the most steps"
    return f"{_family(rows[0])}, {what}:\n\n{markdown(lines, names=1)}"


def _tasks(row: Cells) -> str:
    return f"{row['family']}, {row['tasks']} tasks that have specialists"


def _headroom(rows: list[Cells]) -> str:
    """A line for each method and number of steps, with side metrics after them."""
    shown = _side_metrics(rows)
    head = ["Method", "Steps", "Cost over the best baseline's [95 %]", "Of the way to specialists"]
    lines = [[*head, *(COLUMNS[one][0] for one in shown)]]
    for row in rows:
        cells = [row["step"], _interval(row, "value", 3), _share(row, "closed")]
        side = [COLUMNS[one][1](number(row, one)) for one in shown]
        lines.append([row["method"].replace("*", r"\*"), *cells, *side])
    return f"{_tasks(rows[0])}:\n\n{markdown(lines, names=1)}"


def _with_counts(row: Cells) -> str:
    name = row["method"].replace("*", r"\*")
    return f"{name}, {row['seeds']} x {row['adaptations']}" if row.get("seeds") else name


def _name(row: Cells) -> str:
    if row["learned"] != "True":
        return row["policy"].replace("*", r"\*")
    seeds = int(number(row, "seeds"))
    count = f", {seeds} seeds" if seeds > 1 else ""
    return f"`{row['policy']}`, {trained_on(row)}{count}"


def _mean(row: Cells, name: str) -> str:
    """A mean with its interval; bold if it is the best, or cannot be told from it."""
    shown = _interval(row, name, 2)
    level = number(row, "difference_low") <= 0 <= number(row, "difference_high")
    if "True" not in (row.get("best"), row.get("tied")) and not level:
        return shown
    value, _, rest = shown.partition(" ")
    return f"**{value}** {rest}".rstrip()


def _interval(row: Cells, name: str, digits: int) -> str:
    """What stands in a column, with its interval if there is one."""
    value, low, high = (number(row, f"{name}{end}") for end in ("", "_low", "_high"))
    if math.isnan(value):
        return ""
    ends = "" if math.isnan(low) else f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{value:.{digits}f}{ends}"


def _share(row: Cells, name: str) -> str:
    """The same of a share, in percent."""
    value, low, high = (number(row, f"{name}{end}") for end in ("", "_low", "_high"))
    if math.isnan(value):
        return ""
    return f"{value:.0%}" if math.isnan(low) else f"{value:.0%} [{low:.0%}, {high:.0%}]"


def _difference(row: Cells) -> str:
    """How much worse than the best on the same jobsets, with its interval."""
    return "" if row.get("best") == "True" else _interval(row, "difference", 2)


_DIFFERENCE: Numbers = {"Above the best, in pairs": _difference}
_COMPARED = Layout(("difference", "difference_low"), {}, _DIFFERENCE, mean="")
_WON = replace(
    _COMPARED,
    first={
        "Win rate [95 %]": lambda row: _share(row, "win_rate"),
        "Jobs at most 2": lambda row: _share(row, "within_2"),
    },
)
_GAP = Layout(
    ("series", "jobset", "bound", "ratio_low"),
    {"Over the best in hindsight [95 %]": lambda row: _interval(row, "ratio", 2)},
    {},
    kept=("series", "policy"),
)
_OBJECTIVES = Layout(
    ("value_low", "ratio_low", "reference", "tied"),
    {"Over the best heuristic [95 %]": lambda row: _interval(row, "ratio", 2)},
    {},
)
_WITHHELD = Layout(
    ("length", "slowdown_low", "withheld", "waited", "holding"),
    {
        "Jobs withheld [95 %]": lambda row: _share(row, "withheld"),
        "for so many steps": lambda row: _interval(row, "waited", 1),
        "Steps in which one is": lambda row: _share(row, "holding"),
    },
    {},
    kept=("length", "all"),
    mean="slowdown",
)
_RATIOS = Layout(
    ("place", "best_rule", "ratio_low", "better"),
    {
        "Over the best rule [95 %]": lambda row: _interval(row, "ratio", 2),
        "Sequences where better": lambda row: _share(row, "better"),
    },
    {},
    mean="",
)
