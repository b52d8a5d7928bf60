"""Comparisons of policies on the same unseen jobsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError
from cluster_env.core.policy import Policy
from cluster_env.core.task import Task
from cluster_env.evaluation import PolicyGroup
from cluster_env.objectives import get_objective
from rllib_configs.changes import Changes, changed_keys
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.choices import choose_comparison, order_specs
from tune_jobs.comparing.comparison import compare as compare_specs
from tune_jobs.comparing.guarding import CALIBRATION_JOBSETS
from tune_jobs.comparing.policy_specs import PolicySpec, wanted_in
from tune_jobs.comparing.protocol import DEFAULT_JOBSETS, EvaluationProtocol
from tune_jobs.comparing.trained_runs import (
    Decode,
    TrainedRun,
    find_runs,
    is_heuristic,
    load_runs,
)
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.tables import Row


def compare(
    policies: Sequence[str | Path | Policy],
    on: Task | ExperimentConfig | str | Path | None = None,
    *,
    changes: Changes = (),
    at: Sequence[float] = (),
    objective: str | None = None,
    num_jobsets: int = DEFAULT_JOBSETS,
    num_episodes: int = 1,
    warmup: int | None = None,
    seed: int = 0,
    decode: Decode = "sample",
    guard: bool = False,
    limits: Mapping[str, float] | None = None,
    progress: bool = False,
) -> list[Row]:
    """Evaluates policies on the same unseen jobsets, as ``metasched compare`` does.

    >>> rows = compare(["sjf", "tetris", "runs/mine"], at=[0.7, 1.1], num_jobsets=200)
    >>> print(format_rows(rows))

    Args:
        policies: names of heuristics, folders of runs and globs of them, and policies. Heuristics
            that take a number and are named without are tuned on validation jobsets. Runs that
            differ in their seed alone make one row.
        on: the task; or a config, the name of a preset or a YAML file, for its task. By default
            that of the first run, else of the preset ``deeprm``. Windows of recorded jobs are made
            long, as by the command, unless `changes` say their length; a task is taken as it is.
        changes: to the settings of a config, by their keys: ``{"task.workload.window": 500}``.
        at: values of the setting that the world's comparisons vary: loads, 0.7 for 70 %.
        objective: name of what decides who is best; by default the task's.
        num_jobsets: unseen jobsets, at each of these values.
        num_episodes: episodes of each jobset.
        warmup: steps at the beginning and at the end of the arrival window whose jobs do not count;
            by default none, but for recorded jobs a sixth of a window that was made long.
        seed: of the jobsets and of the policies' random numbers; a task that is given has its own.
        decode: how the policies of runs choose: ``sample``, ``argmax`` or ``tuned``.
        guard: whether to add a row for each run with the policy that a guard lets decide.
        limits: by what share such a policy may be worse than the reference, by metric; by
            default what the world's kind says. A policy that was trained with limits as its input,
            as ``hpc-limits``, is told them, guarded or not.
        progress: whether to show on stderr where it is.

    Returns:
        A row for each value and policy. ``row["slowdown"]`` is a mean over all jobs, and
        ``row["slowdown_low"]`` and ``row["slowdown_high"]`` are the ends of its 95 % interval;
        ``row["difference"]`` is that to the best policy on the same jobsets. Other keys are the
        columns that ``metasched compare --out`` writes. Units: time steps, shares of 1.

    Raises:
        InputError: if a policy or a value cannot be used; before anything is evaluated.
    """
    names = [str(policy) for policy in policies if isinstance(policy, str | Path)]
    own = [_OwnPolicy.of(policy) for policy in policies if not isinstance(policy, str | Path)]
    runs = load_runs(find_runs(name for name in names if not is_heuristic(name)), decode)
    task, steps = _task(on, changes, runs, warmup, seed)
    chosen = task.objective if objective is None else get_objective(objective)
    protocol = EvaluationProtocol(
        task,
        chosen.metric.name,
        num_jobsets=num_jobsets,
        num_episodes=num_episodes,
        warmup=steps,
        limits=limits,
        num_guard_jobsets=CALIBRATION_JOBSETS if guard else 0,
    )
    return compare_specs(
        protocol,
        [*order_specs(names, runs, decode), *own],
        protocol.values(at),
        Progress() if progress else NoProgress(),
    )


@dataclass(frozen=True)
class _OwnPolicy(PolicySpec):
    """A policy that has no name on a command line; nothing is known of its training."""

    @classmethod
    def of(cls, policy: Policy) -> "_OwnPolicy":
        def make(protocol: EvaluationProtocol) -> PolicyGroup:
            # One that was learned may act in a world that differs in what does not matter to it.
            acting_in: Any = getattr(policy, "acting_in", lambda *_: policy)
            acting = acting_in(protocol.task.world, wanted_in(protocol))
            return PolicyGroup(policy.name, (acting,))

        return cls(policy.name, make)

    def check(self, protocol: EvaluationProtocol) -> None:
        """Nothing can be checked."""


def _task(
    on: Task | ExperimentConfig | str | Path | None,
    changes: Changes,
    runs: Sequence[TrainedRun],
    warmup: int | None,
    seed: int,
) -> tuple[Task, int]:
    """The task and the warm-up."""
    if isinstance(on, Task):
        if changed_keys(changes):
            raise InputError("changes are made to a config or a preset, and not to a task")
        return on, warmup or 0
    source = str(on) if isinstance(on, Path) else on
    config, steps = choose_comparison(source, changes, {}, runs, warmup)
    return config.task.build(config.name, seed), steps
