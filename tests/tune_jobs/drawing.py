"""Figures made by their command, and what is written on them."""

from click.testing import CliRunner, Result
from matplotlib.figure import Figure
from matplotlib.text import Text

from tune_jobs.figure import command


def run(*args: str) -> Result:
    """``metasched figure`` with some arguments."""
    return CliRunner().invoke(command, list(args), catch_exceptions=False)


def all_texts(figure: Figure) -> list[str]:
    """All that is written on a figure."""
    return [text.get_text() for text in figure.findobj(Text)]  # type: ignore[attr-defined]


def texts(figure: Figure) -> str:
    """The same, a line for each text."""
    return "\n".join(all_texts(figure))
