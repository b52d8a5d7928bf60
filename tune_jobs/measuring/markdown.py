"""Policies in Markdown: each mean with side metrics beside it, for MLflow and pages of results."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from cluster_env.worlds import WorldSpec
from tune_jobs.measuring.table import (
    beside,
    blocks_of,
    few_windows,
    heading_of,
    interval_of,
    label_of,
    legend_of,
    times_of,
)
from tune_jobs.measuring.verdict import verdicts
from tune_jobs.measuring.wording import number_in, spec_of_row, trained_on
from tune_jobs.tables.columns import TIME, column
from tune_jobs.tables.frames import Cells, Row
from tune_jobs.tables.printing import as_markdown, code_span, markdown, title_case

Numbers = Mapping[str, Callable[[Cells], str]]
"""Columns before and behind the side metrics: title, and what stands in a row."""


def markdown_rows(rows: Sequence[Row]) -> str:
    """What a comparison says, then its rows with all that belongs beside their metric."""
    names = beside(rows[0])
    tables = [
        f"**{heading_of(block[0])}**\n\n{policy_table([cells_of(row) for row in block], names)}"
        for block in blocks_of(rows)
    ]
    legend = [f"- {line}" for line in legend_of(rows, names, wide=False)]
    if not all(map(few_windows, rows)):
        legend.insert(
            0, "- Bold: the best mean, and means that are not significantly different from it."
        )
    said = "\n".join(f"- {as_markdown(sentence)}" for sentence in verdicts(rows))
    return "\n\n".join([*filter(None, [said]), *tables, "\n".join(legend)])


def cells_of(row: Row) -> Cells:
    """A row as it stands in a file."""
    return {name: "" if pd.isna(value) else str(value) for name, value in row.items()}


def policy_table(
    rows: Sequence[Cells],
    names: Sequence[str],
    first: Numbers | None = None,
    last: Numbers | None = None,
    mean: str = "",
) -> str:
    """Policies of one place: each with its mean, `first` numbers, side metrics, and `last` numbers.

    The best mean, and those not significantly different from it, are bold. They stand in the column
    `mean`, by default the metric's, and their intervals in those that begin so.
    """
    metric, spec = rows[0]["metric"], spec_of_row(rows[0])
    before: Numbers = {
        f"{title_case(label_of(rows[0], metric))} [95%]": lambda row: _mean(row, mean or metric),
        **(first or {}),
    }
    behind = last or {}
    lines = [["Policy", *before, *side_titles(spec, names), *behind]]
    for row in rows:
        texts = ([one(row) for one in some.values()] for some in (before, behind))
        lines.append([_name(row), *next(texts), *side_cells(spec, row, names), *next(texts)])
    return markdown(lines)


def side_titles(world_spec: WorldSpec, names: Sequence[str]) -> list[str]:
    """Heads of side metrics, with their unit unless each cell has its own."""
    _, unit = times_of(world_spec)
    columns = [column(name) for name in names]
    return [
        title_case(one.title) + (f" ({unit})" if unit and one.unit == TIME else "")
        for one in columns
    ]


def side_cells(world_spec: WorldSpec, row: Mapping[str, object], names: Sequence[str]) -> list[str]:
    """What stands in a row under `side_titles`."""
    time, _ = times_of(world_spec)
    return [column(name).write(number_in(row.get(name)), time) for name in names]


def _name(row: Cells) -> str:
    if row["learned"] != "True":
        return as_markdown(row["policy"])
    seeds = int(float(row["seeds"]))
    choice = f" -> {row['guard_choice']}" if row.get("guard_choice") else ""
    name = row["policy"].partition(" -> ")[0]
    return f"{code_span(name)}, {trained_on(row)}{f', {seeds} seeds' if seeds > 1 else ''}{choice}"


def _mean(row: Cells, name: str) -> str:
    """A mean with its interval; bold if it is the best, or not significantly different from it."""
    shown = interval_of(row, name)
    level = number_in(row.get("difference_low")) <= 0 <= number_in(row.get("difference_high"))
    best = "True" in (row.get("best"), row.get("tied")) or level
    if not best or few_windows(row):
        return shown
    value, _, rest = shown.partition(" ")
    return f"**{value}** {rest}".rstrip()
