"""How all figures look: sizes, colors that everybody can tell apart, labels beside lines."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from cluster_env.worlds import WORLDS, get_spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_NOTE_CHARACTERS = 12.5  # of small print that fit into an inch

WIDTH = 8.0  # inches; the text is readable when the image is as wide as a page
DPI = 200
TABLE_DPI = 110  # of large tables, whose files would be large

INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"

# Okabe and Ito's colors, which people with any kind of color vision tell apart; yellow left out,
# an olive and a violet added. Seven and eight have no common divisor, so that 56 heuristics have a
# color and a marker of their own.
_HEURISTICS = ("#8a8a8a", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#8f8b1f", "#6a51a3")
_LEARNED = ("#d55e00", "#0072b2", "#000000", "#7f3b08")
_MARKERS = ("x", "^", "s", "D", "v", "P", "<", "*")
_LEARNED_MARKERS = ("o", "p", "h", "d", "8", "H")

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
"""Of things that have no color of their own in all figures; `style_of` goes on where it ends."""
_STYLES = (("-", "."), ("--", "x"), (":", "+"), ("-.", "1"))

_TICKS = (1, 1.5, 2, 3, 5, 7)

_RC: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "text.color": INK,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draws in the house style, whatever the user's matplotlib settings are."""
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_RC, "backend": "agg"}):
        yield


def new_figure(height: float, width: float = WIDTH, dpi: int = DPI) -> Figure:
    """An empty figure, by default of page width; needs neither a display nor global state."""
    return Figure(figsize=(width, height), dpi=dpi, layout="constrained", facecolor="white")


def color_of(key: str, learned: bool, place: int = 0) -> str:
    """Color of a policy by its name without what was tuned: ``tetris``.

    A heuristic has the same one in every figure, a trained policy that of its place among them.
    """
    if learned:
        return _LEARNED[place % len(_LEARNED)]
    place = _place_of(key)
    return MUTED if place < 0 else _HEURISTICS[place % len(_HEURISTICS)]


def marker_of(key: str, learned: bool, place: int = 0) -> str:
    """Marker of a policy, so that color is not all that tells lines apart; see `color_of`."""
    if learned:
        return _LEARNED_MARKERS[place // len(_LEARNED) % len(_LEARNED_MARKERS)]
    place = _place_of(key)
    return "." if place < 0 else _MARKERS[place % len(_MARKERS)]


def style_of(place: int) -> tuple[str, str, str]:
    """Color, line style and marker of one of many things, so that no 32 of them look alike."""
    return PALETTE[place % len(PALETTE)], *_STYLES[place // len(PALETTE) % len(_STYLES)]


def _place_of(key: str) -> int:
    """Where a heuristic stands among those of all worlds; -1 for one that nobody registered."""
    specs = [get_spec(world) for world in WORLDS.names()]
    named = (name for spec in specs for name in (*spec.heuristics.names(), *spec.baselines))
    names = list(dict.fromkeys(named))
    name = key if key in names else key.partition(":")[0]
    return names.index(name) if name in names else -1


def label_ends(axes: "Axes", labels: Sequence[tuple[float, str, str]], size: float = 10) -> None:
    """Writes names beside the right ends of lines, moved apart where they would overlap.

    Limits and scale of the axes must be final. Labels are a height in data coordinates, a text of
    one or more lines and a color; the size of letters is in points.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # so that the layout has settled
    to_axes = axes.transData + axes.transAxes.inverted()
    line = 1.25 * size / (axes.get_position().height * figure.get_size_inches()[1] * 72)
    right = axes.get_xlim()[1]
    wanted = sorted(
        (float(to_axes.transform((right, y))[1]), text, color) for y, text, color in labels
    )
    heights = [line * (1 + text.count("\n")) for _, text, _ in wanted]
    places = spread([y for y, _, _ in wanted], heights)
    for (y, text, color), place in zip(wanted, places, strict=True):
        axes.annotate(
            text,
            xy=(1.0, y),
            xytext=(1.03, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=color,
            fontsize=size,
            linespacing=1.1,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.6,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def spread(places: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Moves ascending places as little as need be until things of these heights do not overlap.

    That is an isotonic regression of the places less those that the things have in a gapless pile.
    """
    if not places:
        return []
    piled = np.cumsum(heights) - np.asarray(heights) / 2
    return list(isotonic_regression(np.asarray(places) - piled).x + piled)


def scale_values(axes: "Axes", values: NDArray[np.float64], axis: str = "y") -> None:
    """Makes an axis logarithmic, with plain numbers, if the values differ by a factor of five.

    Values are of any shape; NaN does not count.
    """
    values = values[np.isfinite(values)]
    if not values.size or values.min() <= 0 or values.max() <= 5 * values.min():
        return
    decades = np.log10(values.max() / values.min())
    ticks = _TICKS if decades < 1.3 else (1, 2, 5) if decades < 3 else (1,)
    scaled = axes.yaxis if axis == "y" else axes.xaxis
    (axes.set_yscale if axis == "y" else axes.set_xscale)("log")
    plain_ticks(scaled, [m * 10.0**k for k in range(-3, 9) for m in ticks])
    (axes.set_ylim if axis == "y" else axes.set_xlim)(values.min() * 0.93, values.max() * 1.08)


def plain_ticks(
    axis: "Axis", ticks: Sequence[float], write: Callable[[float], str] = "{:g}".format
) -> None:
    """Puts ticks at these values alone, written as plain numbers or otherwise."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def headline(figure: Figure, title: str, note: str) -> None:
    """Writes a title at the top left, and in small print under it on what the numbers rest.

    Both begin with a capital letter, whatever metric they begin with.
    """
    characters = int(_NOTE_CHARACTERS * max(WIDTH, figure.get_size_inches()[0]))
    title, note = title[:1].upper() + title[1:], note[:1].upper() + note[1:]
    lines = textwrap.wrap(note, characters, break_on_hyphens=False)
    room = "\n" * len(lines)
    text = figure.suptitle(f"{title}{room}", x=0.012, ha="left", fontweight="bold", fontsize=12.5)
    small = figure.axes[0].annotate(
        "\n".join(lines),
        (0, 0),
        xytext=(0, 3),
        xycoords=text,
        textcoords="offset points",
        fontsize=9.5,
        color=MUTED,
        annotation_clip=False,
    )
    small.set_in_layout(False)
