"""One task as an image: a bar for a policy after each number of steps, and for each heuristic."""

from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.figures.style import INK, color_of, headline, new_figure, styled
from tune_jobs.tables import number, read_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("task", "label", "jobsets", "step", "policy", "cost", "ratio", "unfinished")

_BAR_HEIGHT = 0.32  # inches
_LEARNED_TINTS = (0.45, 1.0)  # opacity of the first and the last step


def draw(table: Path) -> "Figure":
    """Draws the CSV file of the rows of `tune_jobs.adaptation_table.tabulate`.

    Raises:
        InputError: if the file does not hold them.
    """
    rows = read_table(table, COLUMNS)
    first = rows[0]
    num_adapted = sum(bool(row["step"]) for row in rows)
    with styled():
        figure = new_figure(1.5 + _BAR_HEIGHT * len(rows))
        axes = figure.subplots()
        headline(
            figure,
            "Cost on one task before and after adaptation",
            f"{first['task']}: {first['label']}, the numbers beside the bars, on "
            f"{int(number(first, 'jobsets')):,} held-out jobsets; lower is better",
        )
        for place, row in enumerate(rows):
            low, high = _LEARNED_TINTS
            share = place / max(1, num_adapted - 1)
            learned = bool(row["step"])
            axes.barh(
                place,
                number(row, "ratio"),
                height=0.7,
                color=color_of(row["policy"], learned),
                alpha=low + (high - low) * share if learned else 1.0,
            )
            left = number(row, "unfinished")
            cut = f", {left:,.0f} jobs unfinished" if left else ""
            axes.annotate(
                f"{number(row, 'cost'):.4g}{cut}",
                (number(row, "ratio"), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
            )
        axes.axvline(1.0, color=INK, linewidth=1.2)
        axes.set_yticks(range(len(rows)), [row["policy"] for row in rows])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("cost over that of the best of tetris, sjf and packer")
        axes.margins(x=0.15)
    return figure
