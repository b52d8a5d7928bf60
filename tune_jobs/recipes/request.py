"""What a table of a paper, or of ours, is to be of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import Decode, TrainedRun, find_runs, load_runs
from tune_jobs.measuring.work import Work
from tune_jobs.terminal.progress import NoProgress, Progress

if TYPE_CHECKING:
    from rllib_configs.config.schema import ExperimentConfig

DEFAULT_TIME_LIMIT_S = 12.0


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
    time_limit_s: float = DEFAULT_TIME_LIMIT_S  # of the search for the best schedule of a jobset
    num_runners: int = 0  # processes that evaluate policies
    progress: Progress = field(default_factory=NoProgress)
    work: Work = field(default_factory=Work)  # what measures, by these processes
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
