"""The figures by name, and the one way in which they are made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from cluster_env.workloads.formats import read_log
from rllib_configs.loading import read_yaml
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import Decode, TrainedRun, find_runs, load_runs
from tune_jobs.tables.frames import Row, write_table
from tune_jobs.tables.saving import save
from tune_jobs.terminal.files import replacing
from tune_jobs.terminal.progress import NoProgress, Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rllib_configs.schema import ExperimentConfig

DEFAULT_TIME_LIMIT_S = 12.0

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
    "limit": "limits",
    "time-limit": "time_limit_s",
    "runners": "num_runners",
}
"""Fields of `FigureRequest` by options of the command; ``world`` stands for those of a world."""

_GROUPS = {
    "scenarios": ("runs", "decode", "set", "world", "jobsets", "episodes", "seed", "runners"),
    "task": ("runs", "decode", "config", "set", "world", "jobsets", "episodes", "seed"),
}
"""Options that many figures use; those with scenarios of their own take no ``--config``."""


@dataclass(frozen=True)
class FigureRequest:
    """What a figure is to show, as far as it uses it."""

    runs: Sequence[str] = ()  # directories and globs of them
    rows: Sequence[Path] = ()  # folders of `metasched study`
    traces: Sequence[Path] = ()  # job logs; of some figures also folders of them
    at: Sequence[float] = ()  # values of the axis that lines are drawn along
    source: str | None = None  # of the task; by default that of the first run, else deeprm
    overrides: Sequence[str] = ()  # changes to it, ``key=value``
    task_options: Mapping[str, Any] = field(default_factory=dict)  # by names of the world's options
    warmup: int = 0  # steps at both ends of the arrivals whose jobs do not count
    num_jobsets: int = 1000  # unseen ones
    num_episodes: int = 1  # of each
    seed: int = 0  # of the jobsets and of the policies' random numbers
    decode: Decode = "sample"
    limits: Sequence[str] = ()  # of the guard: metrics and shares, ``wait=0.5``
    time_limit_s: float = DEFAULT_TIME_LIMIT_S  # of the search for the best schedule of a jobset
    num_runners: int = 0  # processes that evaluate policies
    progress: Progress = field(default_factory=NoProgress)
    out: Path | None = None  # its folder, where a long figure keeps what it has found

    def load(self) -> "tuple[list[TrainedRun], ExperimentConfig]":
        """The trained policies, and the config that says what they are evaluated on.

        Raises:
            InputError: if a run or the config cannot be used.
        """
        runs = load_runs(find_runs(self.runs), self.decode)
        return runs, choose_config(self.source, self.overrides, self.task_options, runs)

    def specs(self, heuristics: Iterable[str], runs: "Sequence[TrainedRun]") -> list[PolicySpec]:
        """Heuristics of these names, then what was learned in runs."""
        return [*map(heuristic_spec, heuristics), *learned_specs(runs, self.decode)]

    def protocol(self, config: "ExperimentConfig", cap: bool = False) -> EvaluationProtocol:
        """What policies are compared on by the world's headline, see `EvaluationProtocol`."""
        return EvaluationProtocol(
            config.task.build(config.name, self.seed),
            num_jobsets=self.num_jobsets,
            num_episodes=self.num_episodes,
            warmup=self.warmup,
            cap=cap,
        )


@dataclass(frozen=True)
class FigureRecipe:
    """How a figure is made; the module of a single figure has two functions of these names.

    Rows come from recorded runs or by running what is needed, the image from the CSV file of those
    rows and from nothing else. `draw` raises `InputError` if the file does not hold them. A figure
    may come with a page in Markdown, which `explain` makes of the same file.
    """

    collect: Callable[[FigureRequest], list[Row]]
    draw: "Callable[[Path], Figure]"
    explain: Callable[[Path], str] | None = None


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be made.

    Its recipe is a module of this package with ``collect`` and ``draw``, see `FigureRecipe`, or a
    module and the name of a recipe in it, as ``comparison:WIN_RATE``.
    """

    name: str  # also of its files
    about: str  # in one line
    recipe: str
    options: tuple[str, ...]  # names of `OPTIONS` that it uses

    def load(self) -> Any:
        """What has ``collect`` and ``draw``, imported now."""
        module, _, name = self.recipe.partition(":")
        loaded = import_module(f"tune_jobs.figures.{module}")
        return getattr(loaded, name) if name else loaded

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
            raise InputError(f"--table draws what is recorded, so leave out {', '.join(unused)}")
        if unused:
            words["world"] = ["options of the world"]
            shown = ", ".join(word for option in used for word in words[option])
            raise InputError(
                f"the figure {self.name} does not use {', '.join(unused)}; it uses {shown}"
            )


def _read_kinds() -> dict[str, FigureKind]:
    kinds = {}
    for name, entry in read_yaml(Path(__file__).with_name("figures.yaml")).items():
        options = (_GROUPS.get(option, (option,)) for option in entry["options"].split())
        kinds[name] = FigureKind(name, entry["about"], entry["recipe"], sum(options, ()))
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
    recipe: FigureRecipe = kind.load()
    if table is None:
        for path in request.traces:
            if not path.is_dir():
                read_log(path)
        table = out / f"{name}.csv"
        write_table(table, recipe.collect(replace(request, out=out)))
    image = out / f"{name}.png"
    save(recipe.draw(table), image)
    if (explain := getattr(recipe, "explain", None)) is not None:
        page = out / f"{name}.md"
        with replacing(page) as aside:
            aside.write_text(explain(table), encoding="utf-8")
    return image, table
