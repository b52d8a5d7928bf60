"""What the adaptation figures share: panels, lines of methods against steps, small print."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tune_jobs.figures.adaptation_data import color_and_style, untrained
from tune_jobs.figures.style import MUTED, label_ends, new_figure
from tune_jobs.terminal.tables import Cells, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.3
_NEAR = (
    0.5  # methods without training are followed so far above the others, in units of their range
)
_NOTE_CHARACTERS = 52
_NOTE_SIZE = 8.0  # points
_APART = 3.0  # points between the bars of two methods
_MANY_STEPS = 20  # from here on the axis of steps is logarithmic


def grid_of_panels(num_panels: int) -> "tuple[Figure, list[Axes]]":
    """A figure of page width with so many panels in two columns, and no empty ones."""
    columns = min(num_panels, 2)
    lines = -(-num_panels // columns)
    figure = new_figure(1.0 + lines * _HEIGHT)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[num_panels:]:
        axes.remove()
    return figure, list(panels[:num_panels])


def draw_methods(
    axes: "Axes",
    title: str,
    rows: Sequence[Cells],
    lines: Sequence[tuple[float, str, str]] = (),
    limits: tuple[float, float] | None = None,
) -> None:
    """A line for each method with bars for its intervals, and its name at its end.

    Methods that begin without training are far above all others at first. The y axis does not
    follow them, and a note under the title says what lies beyond it.

    Args:
        axes: where to draw.
        title: of the panel.
        rows: cells ``method``, ``step``, ``value`` and the ends of its interval; with ``episodes``
            the axis says how many a step has.
        lines: height, name and color of lines across the panel.
        limits: of the y axis, if it is not to follow the values.
    """
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    methods = list(dict.fromkeys(row["method"] for row in rows))
    low, high = limits or _limits(rows, methods)
    labels, beyond = [], []
    for method in methods:
        mine = [row for row in rows if row["method"] == method]
        color, style = color_and_style(method, methods)
        x, y, below, above = (
            np.array([number(row, name) for row in mine])
            for name in ("step", "value", "value_low", "value_high")
        )
        # Bars side by side: bands over each other hide which interval belongs to which line.
        shift = _APART * (methods.index(method) - (len(methods) - 1) / 2)
        beside = axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
        axes.plot(x, y, color=color, linestyle=style, linewidth=1.6, transform=beside)
        axes.plot(x, y, "o", color=color, markersize=3.5, transform=beside)
        axes.vlines(x, below, above, color=color, linewidth=1.3, alpha=0.5, transform=beside)
        if y[-1] <= high:
            labels.append((float(y[-1]), method, color))
        if y.max() > high:
            beyond.append(f"{method} {y[0]:.2f} to {y[-1]:.2f}")
    for height, name, color in lines:
        if height > high:
            beyond.append(f"{name} {height:.2f}")
            continue
        axes.axhline(height, color=color, linewidth=1.1, linestyle=(0, (5, 2)), zorder=1)
        labels.append((height, name, color))
    _scale_steps(axes, sorted({int(number(row, "step")) for row in rows}))
    axes.set_xlabel(f"steps of adaptation{_episodes_of_a_step(rows)}")
    axes.set_ylim(low, high)
    _head(axes, title, beyond)
    label_ends(axes, labels, size=8.5)


def _head(axes: "Axes", title: str, beyond: Sequence[str]) -> None:
    """The title, and below it, above the panel where no line runs, what lies beyond its limits."""
    whole = (name.replace(" ", "\N{NO-BREAK SPACE}") for name in beyond)
    lines = textwrap.wrap(f"beyond: {', '.join(whole)}", _NOTE_CHARACTERS) if beyond else []
    axes.annotate(
        "\n".join(lines),
        (0.0, 1.0),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        color=MUTED,
        fontsize=_NOTE_SIZE,
        va="bottom",
    )
    axes.set_title(title, pad=6 + 1.3 * _NOTE_SIZE * len(lines))


def _limits(rows: Sequence[Cells], methods: Sequence[str]) -> tuple[float, float]:
    """Ends of the y axis: all values, of methods without training the last one alone, if near."""
    ends = {
        method: [number(row, "value") for row in rows if row["method"] == method]
        for method in methods
    }
    values = [value for method in methods if not untrained(method) for value in ends[method]]
    if values:
        near = max(values) + _NEAR * (max(values) - min(values))
        values += [
            ends[method][-1] for method in methods if untrained(method) and ends[method][-1] <= near
        ]
    else:
        values = [value for found in ends.values() for value in found]
    room = max(0.07 * float(np.ptp(values)), 0.01)
    return min(values) - room, max(values) + 2 * room


def measured_on(rows: Sequence[Cells]) -> str:
    """On what the numbers rest: tasks, adaptations and meta-training seeds."""
    methods = [row for row in rows if row["series"] == "method"]
    tasks, adaptations, seeds = (
        _range({int(number(row, name)) for row in methods})
        for name in ("tasks", "adaptations", "seeds")
    )
    return (
        f"{tasks} held-out tasks, {adaptations} adaptations of each, {seeds} training seeds of a "
        f"method; bars: 95% intervals over tasks and training seeds"
    )


def _scale_steps(axes: "Axes", steps: Sequence[int]) -> None:
    """Ticks at the steps that were evaluated; many steps get a logarithmic axis."""
    from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

    if steps[-1] > _MANY_STEPS:
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    axes.xaxis.set_major_locator(FixedLocator(list(steps)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FormatStrFormatter("%d"))
    last = max(steps[-1], steps[0] + 1)
    room = 0.04 * last
    axes.set_xlim(steps[0] - (0.4 if steps[-1] > _MANY_STEPS else 2 * room), last + 3 * room)


def _episodes_of_a_step(rows: Sequence[Cells]) -> str:
    each = {
        number(row, "episodes") / number(row, "step")
        for row in rows
        if row.get("episodes") and number(row, "step") > 0
    }
    return f", {each.pop():g} episodes each" if len(each) == 1 else ""


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
