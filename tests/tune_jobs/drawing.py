"""Figures made by their command, and what is written on them."""

from click.testing import CliRunner, Result
from matplotlib.figure import Figure
from matplotlib.text import Text

from tune_jobs.figure import command


def run(*args: str) -> Result:
    """``metasched figure`` with some arguments."""
    return CliRunner().invoke(command, list(args), catch_exceptions=False)


def texts(figure: Figure) -> str:
    """All that is written on a figure, a line for each text."""
    return "\n".join(text.get_text() for text in figure.findobj(Text))  # type: ignore[attr-defined]
