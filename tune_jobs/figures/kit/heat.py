"""Tables whose cells have colors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from tune_jobs.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class HeatCell:
    """What is written into a cell, and in small print below it."""

    text: str
    below: str = ""
    bold: bool = False
    dark: bool = False  # the color is too dark for black letters


def draw_heat(
    axes: "Axes",
    shades: ArrayLike,
    cells: Sequence[Sequence[HeatCell]],
    names: Iterable[str],
    heads: Sequence[str],
    **colors: Any,
) -> None:
    """A colored table with names at its left and heads above it.

    Cells are ``(num_lines, num_columns)``, shades ``(num_lines, num_colored)``: columns behind them
    have no color. How shades become colors is said as for ``imshow``.
    """
    axes.imshow(shades, aspect="auto", **colors)
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for line, row in enumerate(cells):
        for column, cell in enumerate(row):
            color, weight = "white" if cell.dark else INK, "bold" if cell.bold else "normal"
            shift = -0.18 if cell.below else 0.0
            axes.annotate(
                cell.text, (column, line + shift), size=9, color=color, weight=weight, **middle
            )
            if cell.below:
                axes.annotate(cell.below, (column, line + 0.22), size=7, color=color, **middle)
    axes.set_yticks(range(len(cells)), list(names))
    axes.set_xticks(range(len(heads)), list(heads))
    axes.set_xlim(-0.5, len(heads) - 0.5)
    axes.tick_params(labelsize=8, length=0, labeltop=True, labelbottom=False)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
