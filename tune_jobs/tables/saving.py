"""How a figure is written; it needs no matplotlib itself."""

from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.terminal.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: "Figure", path: Path) -> None:
    """Writes a figure, atomically; the folder is created if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=figure.dpi)
