"""Tables of figures and comparisons in Markdown, for pages of recorded results."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path

from tune_jobs.figures.site_page import read_sites, tables_of
from tune_jobs.measuring.markdown import Numbers, policy_table, side_cells, side_titles
from tune_jobs.measuring.table import interval_of
from tune_jobs.measuring.wording import described, jobs_in, number_in, spec_of_row
from tune_jobs.tables.frames import Cells, read_table
from tune_jobs.tables.printing import markdown, title_case

_POLICY = ("metric", "policy", "learned", "jobsets", "utilization")
_ADAPTED = ("series", "family", "objective", "method", "step", "value", "value_low", "utilization")
_CLOSED = ("family", "method", "step", "value", "closed", "tasks", "utilization")

_SIDE = (
    *("utilization", "completion_time", "wait", "longest_wait"),
    *("slowdown_small", "slowdown_large"),
    *("bounded_slowdown_narrow", "bounded_slowdown_medium", "bounded_slowdown_wide"),
    *("largest_slowdown", "unfinished"),
)
"""Columns behind the mean, as far as a table has them."""

_OF_TASKS = {
    name: f": {what} the best baseline. Side metrics are measured after the last step"
    for name, what in (
        ("adaptation", "costs relative to"),
        ("adaptation-win-rate", "share of tasks that match"),
    )
}
"""What tables of adaptation say of their numbers."""


@dataclass(frozen=True)
class Layout:
    """How the policies of a figure stand in a table, see `policy_table`."""

    columns: tuple[str, ...]  # that its CSV file has, beside those of all tables of policies
    first: Numbers = field(default_factory=dict)
    last: Numbers = field(default_factory=dict)
    kept: tuple[str, str] | None = None  # a column and its text, if some rows alone are of policies
    mean: str = "value"

    def table(self, rows: list[Cells]) -> str:
        """The table of the rows of a place."""
        names = _side_metrics(rows, rows[0]["metric"])
        return policy_table(rows, names, self.first, self.last, self.mean)


def markdown_of(table: Path) -> str:
    """The table of a CSV file, one for each place or family, by what its column ``table`` says.

    It is empty for those that stand on no page. The line of the best mean, and those not
    significantly different from it, are bold.

    Raises:
        InputError: if the file cannot be read, or lacks a column of what it says it is.
    """
    name = read_table(table, ())[0].get("table", "")
    if name in _LAYOUTS:
        layout = _LAYOUTS[name]
        rows = read_table(table, (*_POLICY, *layout.columns))
        if layout.kept is not None:
            column, text = layout.kept
            rows = [row for row in rows if row[column] == text]
        return _joined(rows, _place, layout.table)
    if name in _OF_TASKS:
        rows = sorted(read_table(table, _ADAPTED), key=_family)
        return _joined(rows, lambda row: f"Family `{_family(row)}`", _adaptation, _OF_TASKS[name])
    if name == "sites":
        return tables_of(read_sites(table))
    if name == "headroom":
        rows = read_table(table, _CLOSED)
        return _joined(rows, "{family}, {tasks} tasks that have specialists".format_map, _headroom)
    return ""


def _joined(
    rows: list[Cells],
    place: Callable[[Cells], str],
    table: Callable[[list[Cells]], str],
    what: str = "",
) -> str:
    blocks = [(name, list(some)) for name, some in groupby(rows, place)]
    return "\n\n".join(f"{name}{what}:\n\n{table(some)}" for name, some in blocks)


def _place(row: Cells) -> str:
    """What a row rests on, in words, and what `metasched.join` has put in front of its columns."""
    given = row.get("place") or ""
    jobs, details = jobs_in(row), described(row)
    inside = f" ({details})" if details else ""
    named = f"{given}{inside}" if given else "; ".join(filter(None, (jobs, details)))
    world_spec = spec_of_row(row)
    metric = "" if row["metric"] == world_spec.headline else f"; by {row['metric']}"
    joined = takewhile(lambda name: name != "table", row)
    varied = "".join(f"; {name} {row[name]}" for name in joined)
    return f"{title_case(named)}; {float(row['jobsets']):,.0f} jobsets{metric}{varied}"


def _side_metrics(rows: list[Cells], metric: str = "") -> list[str]:
    """Names of the columns of side metrics; unfinished jobs where there are any."""
    shown = [name for name in _SIDE if rows[0].get(name) and name != metric]
    if not any(number_in(row.get("unfinished")) > 0 for row in rows):
        shown = [name for name in shown if name != "unfinished"]
    return shown


def _family(row: Cells) -> str:
    """Of which tasks a row of adaptation is."""
    return ": ".join(name for name in (row["family"], row["objective"].replace("_", " ")) if name)


def _adaptation(rows: list[Cells]) -> str:
    """A line for each method, with its mean after so many steps and side metrics after the most."""
    shown = [name for name in _SIDE if name != "unfinished" and rows[0].get(name)]
    steps = sorted({int(row["step"]) for row in rows if row["series"] == "method"})
    titles = [f"After {step} step{'s' * (step != 1)}" for step in steps]
    spec = spec_of_row(rows[0])
    lines = [["Method", *titles, *side_titles(spec, shown)]]
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        after = {int(row["step"]): interval_of(row, "value", 3) for row in mine if row["step"]}
        costs = [after.get(step, "") for step in steps]
        if not after:  # it does not adapt
            costs = [interval_of(mine[0], "value", 3), *costs[1:]]
        counts = f", {mine[0]['seeds']} x {mine[0]['adaptations']}" if mine[0].get("seeds") else ""
        lines.append([f"{_escaped(name)}{counts}", *costs, *side_cells(spec, mine[-1], shown)])
    return markdown(lines)


def _headroom(rows: list[Cells]) -> str:
    """A line for each method and number of steps, with side metrics after them."""
    shown = _side_metrics(rows)
    head = ["Method", "Steps", "Cost over the best baseline's [95%]", "Of the way to specialists"]
    spec = spec_of_row(rows[0])
    lines = [[*head, *side_titles(spec, shown)]]
    for row in rows:
        cells = [row["step"], interval_of(row, "value", 3), interval_of(row, "closed")]
        lines.append([_escaped(row["method"]), *cells, *side_cells(spec, row, shown)])
    return markdown(lines)


def _escaped(name: str) -> str:
    return name.replace("*", r"\*")


_COMPARED = Layout(
    ("difference", "difference_low"),
    last={
        "Above the best, paired": lambda row: (
            "" if row.get("best") == "True" else interval_of(row, "difference")
        )
    },
    mean="",
)
_WON = replace(
    _COMPARED,
    first={
        "Win rate [95%]": partial(interval_of, name="win_rate"),
        "Jobs at most 2": partial(interval_of, name="within_2"),
    },
)
_GAP = Layout(
    ("series", "jobset", "bound", "ratio_low"),
    {"Over the best in hindsight [95%]": partial(interval_of, name="ratio")},
    kept=("series", "policy"),
)
_OBJECTIVES = Layout(
    ("value_low", "ratio_low", "reference", "tied"),
    {"Over the best heuristic [95%]": partial(interval_of, name="ratio")},
)
_WITHHELD = Layout(
    ("length", "slowdown_low", "withheld", "waited", "holding"),
    {
        "Jobs delayed although they fit [95%]": partial(interval_of, name="withheld"),
        "Steps of delay": partial(interval_of, name="waited", digits=1),
        "Steps with a delayed job": partial(interval_of, name="holding"),
    },
    kept=("length", "all"),
    mean="slowdown",
)
_RATIOS = Layout(
    ("place", "best_rule", "ratio_low", "better"),
    {
        "Over the best rule [95%]": partial(interval_of, name="ratio"),
        "Sequences where better": partial(interval_of, name="better"),
    },
    mean="",
)
_LAYOUTS = {
    "comparison": _COMPARED,
    "scenarios": _COMPARED,
    "win-rate": _WON,
    "optimality-gap": _GAP,
    "objectives": _OBJECTIVES,
    "withheld-jobs": _WITHHELD,
    "ratios": _RATIOS,
}
"""By what the column ``table`` says."""
