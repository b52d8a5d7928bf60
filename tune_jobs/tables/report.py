"""What a command found: named tables, the text and the JSON of them, and pictures drawn of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import pandas as pd

from cluster_env.core.errors import InputError
from cluster_env.core.registry import unknown
from tune_jobs.tables.frames import frame_of, write_table
from tune_jobs.tables.printing import Sheet, folded, format_sheet
from tune_jobs.terminal.files import save_figure, write_whole
from tune_jobs.terminal.output import print_json, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEEP_HINT = "Next     the same with --out FOLDER keeps all tables and draws them"

Drawing = Callable[..., "Figure"]
"""Draws a picture: its kind, the CSV files that it is drawn from, and options by name."""


@dataclass(frozen=True)
class Picture:
    """A picture of tables of a report.

    Attributes:
        kind: names what draws it, see `tune_jobs.figures.pictures`.
        tables: names of the tables that it is drawn from.
        options: what else it needs.
    """

    kind: str
    tables: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Report(Mapping[str, pd.DataFrame]):
    """What a command found, as a mapping from names of tables to data frames.

    >>> report = replay("jobs.csv", policies=["fcfs:easy", "sjf:easy"], processors=16, gpus=4)
    >>> report["by-user"].sort_values("of_work")
    >>> report.figure("timeline").savefig("timeline.pdf")

    Its repr is the text that the command prints. Times are in seconds, shares are of 1.

    Attributes:
        text: as the command prints it, with marks for bold.
        tables: frames by name, each made when it is asked for.
        sheets: those of the tables that people read, in order.
        data: what the command prints as JSON, and numbers that stand in no table.
        remarks: sentences about the numbers.
        files: other files that `write` keeps, texts by name.
        pictures: by name.
        hint: what the command says where nothing is kept.
        written: what it says where all is; {out} is the folder.
        draw: draws the pictures.
    """

    text: str
    tables: Mapping[str, Callable[[], pd.DataFrame]]
    sheets: Sequence[Sheet] = ()
    data: object = None
    remarks: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    hint: str = ""
    written: str = ""
    draw: Drawing | None = None

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.tables[name]().infer_objects()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        return click.unstyle(self.text)

    def figure(self, name: str) -> "Figure":
        """Draws a picture, from nothing but the CSV files of its tables.

        Raises:
            InputError: if the report has no picture of that name.
        """
        if name not in self.pictures:
            raise unknown("picture", name, self.pictures)
        with TemporaryDirectory() as folder:
            for table in self.pictures[name].tables:
                write_table(Path(folder, f"{table}.csv"), self.tables[table]())
            return self._drawn(name, Path(folder))

    def write(self, out: str | Path) -> None:
        """Writes all tables (CSV) and pictures (PNG) to a folder."""
        out = Path(out)
        for name, table in self.tables.items():
            write_table(out / f"{name}.csv", table())
        for name, text in self.files.items():
            write_whole(out / name, text)
        for name in self.pictures:
            save_figure(self._drawn(name, out), out / f"{name}.png")

    def _drawn(self, name: str, folder: Path) -> "Figure":
        picture = self.pictures[name]
        if self.draw is None:
            raise InputError("this report cannot be drawn")
        paths = [folder / f"{table}.csv" for table in picture.tables]
        return self.draw(picture.kind, *paths, **picture.options)

    def show(self, *, as_json: bool = False, out: str | Path | None = None) -> None:
        """Prints what was found, as text or as JSON, and keeps it in a folder if one is given."""
        if as_json:
            print_json(self.data)
        say = silent if as_json else click.echo
        say(self.text)
        if out is not None:
            self.write(out)
        if words := self.hint if out is None else self.written.replace("{out}", str(out)):
            say(f"\n{words}")


def tables_of(sheets: Iterable[Sheet]) -> dict[str, Callable[[], pd.DataFrame]]:
    """The sheets with rows, as tables of a report."""
    return {sheet.name: partial(frame_of, sheet.rows) for sheet in sheets if sheet.rows}


def kept(picture: str) -> str:
    """What a command says once a picture lies beside its table of the same name."""
    image, table = (f"{{out}}/{picture}.{ending}" for ending in ("png", "csv"))
    return f"Wrote {image}, drawn from {table}, and the tables beside it"


def text_of(head: str, sheets: Iterable[Sheet], remarks: Iterable[str]) -> str:
    """A head, sheets as people get to see them, and sentences below."""
    under = ("\n".join(folded([one])) for one in remarks)
    return "\n\n".join([click.style(head, bold=True), *map(format_sheet, sheets), *under])
