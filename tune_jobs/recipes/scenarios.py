"""Every rule and policy in several scenarios."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_env.core.errors import InputError
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.shipped import find_log
from tune_jobs.measuring.choices import choose_comparison
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.protocol import UNSEEN, EvaluationProtocol
from tune_jobs.measuring.trained_runs import TrainedRun, find_runs, load_runs
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import Row


@dataclass(frozen=True)
class Scenario:
    """What all policies are measured on once."""

    name: str
    preset: str
    settings: Mapping[str, object]  # of the task, without ``task.``, that differ from the preset's
    named: str = ""  # see `EvaluationProtocol.named`
    warmup: int = 0  # steps at both ends whose jobs do not count, unless somebody asks for others

    def changes(self, request: FigureRequest) -> list[str]:
        """What differs from the preset, as ``KEY=VALUE``; what was asked for comes last."""
        return [
            *(f"task.{key}={value}" for key, value in self.settings.items()),
            *request.overrides,
        ]


@dataclass(frozen=True)
class ScenarioTable:
    """A table of the same policies in several scenarios, by one metric."""

    title: str
    scenarios: Callable[[FigureRequest], Iterable[Scenario]]
    metric: str = "bounded_slowdown"

    def collect(self, request: FigureRequest) -> list[Row]:
        """Evaluates the heuristics of the world, and the runs' policies, in each scenario.

        Returns:
            The rows of `tune_jobs.measuring.comparison.compare`, with the name of the scenario
            (``place``) and the title (``exhibit``) in front.

        Raises:
            InputError: if a log or a run cannot be used.
        """
        runs = load_runs(find_runs(request.runs), request.decode)
        return [
            row
            for scenario in self.scenarios(request)
            for row in self._compared(scenario, request, runs)
        ]

    def _compared(
        self,
        scenario: Scenario,
        request: FigureRequest,
        runs: Sequence[TrainedRun],
    ) -> list[Row]:
        """The rows of a scenario, see `collect`."""
        config, warmup = choose_comparison(
            scenario.preset, scenario.changes(request), request.task_options, runs, None
        )
        protocol = EvaluationProtocol(
            config.task.build(config.name, request.seed),
            self.metric,
            num_jobsets=request.num_jobsets,
            num_episodes=request.num_episodes,
            warmup=request.warmup or scenario.warmup or warmup,
        )
        specs = request.specs(protocol.task.spec.heuristics.names(), runs)
        protocols = [scenario.named or UNSEEN]
        rows = compare(protocol, specs, protocol.values(), request.work, protocols)
        return [{"exhibit": self.title, "place": scenario.name, **row} for row in rows]


def logs_of(request: FigureRequest) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Name and settings of each log that was named, or lies in a folder that was.

    Its machine is as large as ``--processors`` says, or the log, else as its largest job. What is
    no log in a folder is left out, and said.
    """
    for path in files_of(request.traces):
        try:
            jobs = read_log(path)
        except InputError as error:
            if path in request.traces:
                raise
            request.work.progress.say(f"{path.name} is left out: {error}")
            continue
        processors = jobs.processors or int(jobs.demand[:, 0].max())
        settings: dict[str, object] = {"workload.kind": "trace", "workload.path": path}
        if "processors" not in request.task_options:
            settings["world.processors"] = processors
        yield path.name.partition(".")[0], settings


def files_of(traces: Sequence[Path]) -> Iterator[Path]:
    """The files that were named, and those of the folders, by name; hidden ones are none."""
    if not traces:
        raise InputError("this figure shows job logs: name each, or a folder of them, with --trace")
    for path in map(find_log, traces):
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        yield from (one for one in inside if one.is_file() and not one.name.startswith("."))
