"""All recorded tables: each says what it is, and is drawn whole or refused in a sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from tests.conftest import REPOSITORY
from tune_jobs.figures import FIGURES
from tune_jobs.figures.registry import FigureKind
from tune_jobs.tables.frames import read_frame, write_table

RECORDED = sorted((REPOSITORY / "tune_jobs" / "figures" / "recorded").glob("*.csv"))
KINDS = [FIGURES.get(name) for name in FIGURES.names()]
NOT_DRAWN = {
    *("guard", "published-agents", "starts"),
    *("sites-entries", "sites-leaderboard", "sites-weeks"),
}
"""Tables of figures that are gone, and some that stand on pages alone."""


def kind_of(path: Path) -> FigureKind | None:
    """The figure of a table: that of its name, else one of what it is."""
    table = read_frame(path, ["table"])["table"].iloc[0]
    named = [kind for kind in KINDS if kind.name == path.stem]
    (kind, *_) = [*named, *(kind for kind in KINDS if kind.table == table), None]
    assert (kind is None) == (table in NOT_DRAWN)
    assert kind is None or kind.table == table
    return kind


def lay_out(figure: Figure) -> None:
    """Puts everything where drawing would; texts of legends are moved as these are drawn."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    for legend in figure.findobj(Legend):  # type: ignore[attr-defined]
        legend.draw(renderer)


def texts_beside_axes(figure: Figure) -> Iterator[Text]:
    """All that is written, but for ticks, which may lie beyond the ends of their axis."""
    ticks = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in axis.get_ticklabels(which="both")
    }
    for text in figure.findobj(Text):  # type: ignore[attr-defined]
        if text.get_visible() and text.get_text().strip() and id(text) not in ticks:
            yield text


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_table_is_drawn_and_no_text_leaves_the_picture(
    path: Path, tmp_path: Path
) -> None:
    if (kind := kind_of(path)) is None:
        return
    figure = kind.draw(path)
    lay_out(figure)
    width, height = figure.bbox.size
    shown = list(texts_beside_axes(figure))
    assert shown
    for text in shown:
        box = text.get_window_extent()
        inside = -2 <= box.x0 <= box.x1 <= width + 2 and -2 <= box.y0 <= box.y1 <= height + 2
        assert inside, (text.get_text(), box.extents)
    other = tmp_path / path.name
    write_table(other, [{"table": kind.table, "nothing": 1}])
    with pytest.raises(InputError, match="has no column"):
        kind.draw(other)
