"""The figures by name, and the one way in which they are made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.workloads.formats import read_log
from rllib_configs.config.loading import read_yaml
from tune_jobs.measuring.work import working
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row, write_table
from tune_jobs.terminal.files import save_figure, write_whole
from tune_jobs.terminal.running import num_local_cpus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OPTIONS = {
    "runs": "runs",
    "rows": "rows",
    "trace": "traces",
    "at": "at",
    "config": "source",
    "set": "overrides",
    "world": "task_options",
    "warmup": "warmup",
    "jobsets": "num_jobsets",
    "episodes": "num_episodes",
    "seed": "seed",
    "decode": "decode",
    "time-limit": "time_limit_s",
    "runners": "num_runners",
}
"""Fields of `FigureRequest` by options of the command; ``world`` stands for those of a world."""

_GROUPS = {
    "scenarios": ("runs", "decode", "set", "world", "jobsets", "episodes", "seed", "runners"),
    "task": (
        *("runs", "decode", "config", "set", "world", "jobsets", "episodes", "seed", "runners"),
    ),
}
"""Options that many figures use; those with scenarios of their own take no ``--config``."""


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be made: its rows are measured, and it is drawn from their file alone.

    What does so are functions, named by module and, behind a colon, by their own name.
    """

    name: str  # also of its files
    about: str  # in one line
    rows: str  # gives rows for a `FigureRequest`
    drawing: str  # draws the CSV file of such rows, or raises `InputError` if it holds others
    options: tuple[str, ...]  # names of `OPTIONS` that it uses
    table: str  # what its rows are, in the column of this name
    all_cpus: bool = False  # whether all of them measure where nobody says how many do
    page: str = ""  # writes a page in Markdown of the same file, if anything does

    def collect(self, request: FigureRequest) -> list[Row]:
        """Measures the rows."""
        rows: list[Row] = function_at(f"tune_jobs.{self.rows}", "collect")(request)
        return [{"table": "", **row} | {"table": self.table} for row in rows]

    def draw(self, table: Path) -> "Figure":
        """Draws the CSV file of such rows."""
        figure: Figure = function_at(f"tune_jobs.figures.{self.drawing}", "draw")(table)
        return figure

    def explain(self, table: Path) -> str:
        """A page about the CSV file; empty if the figure has none."""
        return str(function_at(f"tune_jobs.figures.{self.page}", "")(table)) if self.page else ""

    def refuse_unused(self, given: Mapping[str, Any], from_table: bool = False) -> None:
        """Refuses what the figure would ignore, so that a mistyped run is not left out silently.

        Args:
            given: fields of `FigureRequest` that the user gave.
            from_table: whether the figure is drawn again from its CSV file, which needs none.

        Raises:
            InputError: naming the options and the figure.
        """
        words = {option: [f"--{option}"] for option in OPTIONS}
        words["world"] = [f"--{name}" for name in given.get("task_options", ())]
        used = () if from_table else self.options
        unused = [
            word
            for option, name in OPTIONS.items()
            if name in given and option not in used
            for word in words[option]
        ]
        if unused and from_table:
            raise InputError(
                f"--rows with a CSV file draws what is recorded, so leave out {', '.join(unused)}"
            )
        if unused:
            words["world"] = ["options of the world"]
            shown = ", ".join(word for option in used for word in words[option])
            raise InputError(
                f"the figure {self.name} does not use {', '.join(unused)}; it uses {shown}"
            )


def function_at(place: str, usual: str) -> Any:
    """A function by the name of its module and, behind a colon, its own; imported now."""
    module, _, name = place.partition(":")
    return attrgetter(name or usual)(import_module(module))


def _read_kinds() -> dict[str, FigureKind]:
    kinds = {}
    for name, entry in read_yaml(Path(__file__).with_name("figures.yaml")).items():
        options = (_GROUPS.get(option, (option,)) for option in entry.pop("options").split())
        entry.setdefault("table", name)
        kinds[name] = FigureKind(name, options=sum(options, ()), **entry)
    return kinds


FIGURES: Registry[FigureKind] = Registry("figure", _read_kinds())


def make_figure(
    name: str, request: FigureRequest, out: Path, table: Path | None = None
) -> tuple[Path, Path]:
    """Makes a figure in a folder, or draws the CSV file of an earlier call again.

    Returns:
        The paths of the image and of the CSV file that it was drawn from.

    Raises:
        InputError: if there is no such figure, or what it needs is missing; before anything is
            evaluated if a log cannot be read or a folder of rows is not there.
    """
    kind = FIGURES.get(name)
    for folder in request.rows:  # before what reads them is imported, which takes seconds
        if table is None and not folder.is_dir():
            raise InputError(f"there is no folder {folder} of rows; metasched study writes one")
    if table is None:
        for path in request.traces:
            if not path.is_dir():
                read_log(path)
        table = out / f"{name}.csv"
        kept = table.with_suffix(".jsonl")
        runners = request.num_runners
        if kind.all_cpus and not runners and num_local_cpus() > 1:
            runners = num_local_cpus()
        with working(runners, request.progress, kept) as work:
            rows = kind.collect(replace(request, work=work, out=out))
        write_table(table, rows)
    image = out / f"{name}.png"
    save_figure(kind.draw(table), image)
    if text := kind.explain(table):
        write_whole(out / f"{name}.md", text)
    return image, table
