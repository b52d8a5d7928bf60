"""Comparisons of policies on the same unseen jobsets, and what may decide."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cluster_env.core.policy import Policy
from cluster_env.evaluation import PolicyGroup
from cluster_env.task import Task
from metasched.arguments import (
    Count,
    CountOrZero,
    Option,
    Seed,
    Several,
    new_file,
    shown,
    task_options,
)
from rllib_configs.changes import Changes
from rllib_configs.schema import ExperimentConfig
from tune_jobs.measuring.guard_report import GuardOptions, decide
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import DEFAULT_JOBSETS, EvaluationProtocol
from tune_jobs.measuring.reporting import ComparisonOptions, evaluate_policies
from tune_jobs.measuring.table import format_rows
from tune_jobs.measuring.trained_runs import Decode
from tune_jobs.tables.frames import Row, frame_of
from tune_jobs.tables.report import Report


class Comparison(list[Row]):
    """Rows of a comparison, whose repr is the table that the command prints."""

    def __repr__(self) -> str:
        return format_rows(self) if self else "[]"

    def to_frame(self) -> pd.DataFrame:
        """The rows as a data frame."""
        return frame_of(self).infer_objects()


def compare(
    policies: Sequence[str | Path | Policy],
    on: Task | ExperimentConfig | str | Path | None = None,
    *,
    changes: Changes = (),
    at: Sequence[float] = (),
    objective: str | None = None,
    num_jobsets: Count = DEFAULT_JOBSETS,
    num_episodes: Count = 1,
    warmup: CountOrZero | None = None,
    seed: Seed = 0,
    decode: Decode = "sample",
    guard: bool = False,
    limits: Mapping[str, float] | None = None,
    protocols: Sequence[str] = (),
    num_runners: CountOrZero = 0,
    address: str | None = None,
    progress: bool = False,
    **options: Option,
) -> Comparison:
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
            default what the world's kind says.
        protocols: jobsets to compare on, as in the command's help; by default unseen ones.
        num_runners: processes that evaluate policies; 0 evaluates in this one.
        address: Ray cluster for them.
        progress: whether to show on stderr where it is.
        options: of the world, as in the command's help: ``window=500``.

    Returns:
        A row for each value and policy, as a list that shows itself as a table and becomes a data
        frame by ``to_frame()``. ``row["slowdown"]`` is a mean over all jobs, and
        ``row["slowdown_low"]`` and ``row["slowdown_high"]`` are the ends of its 95 % interval;
        ``row["difference"]`` is that to the best policy on the same jobsets. Other keys are the
        columns that ``metasched compare --out`` writes. Units: time steps, shares of 1.

    Raises:
        InputError: if a policy or a value cannot be used; before anything is evaluated.
    """
    asked = ComparisonOptions(
        source=str(on) if isinstance(on, Path) else on,
        overrides=changes,
        task_options=task_options(options),
        names=[str(policy) for policy in policies if isinstance(policy, str | Path)],
        at=at,
        objective=objective,
        num_jobsets=num_jobsets,
        num_episodes=num_episodes,
        warmup=warmup,
        seed=seed,
        decode=decode,
        guard=guard,
        limits=limits,
        protocols=protocols,
        num_runners=num_runners,
        address=address,
    )
    own = [_spec_of(policy) for policy in policies if not isinstance(policy, str | Path)]
    rows, _ = evaluate_policies(asked, shown(progress), own)
    return Comparison(rows)


def guard(
    run: str | Path,
    on: Task | ExperimentConfig | str | Path | None = None,
    *,
    changes: Changes = (),
    objective: str | None = None,
    num_jobsets: Several = 500,
    warmup: CountOrZero | None = None,
    limits: Mapping[str, float] | None = None,
    later: bool = False,
    seed: Seed = 0,
    decode: Decode = "sample",
    num_runners: CountOrZero = 0,
    address: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
    **options: Option,
) -> Report:
    """Decides between a learned policy and the best heuristic, as ``metasched guard`` does.

    >>> decision = guard("deeprm-operation", num_jobsets=100)
    >>> decision.data["chosen"], decision["candidates"]

    Args:
        run: folder of a run, or the name of a pretrained policy.
        on: see `compare`.
        changes: see `compare`.
        objective: that decides which is better; by default the task's.
        num_jobsets: validation jobsets to decide on.
        warmup: see `compare`.
        limits: see `compare`.
        later: whether to look how the decision does on held-out jobsets, too.
        seed: see `compare`.
        decode: see `compare`.
        num_runners: see `compare`.
        address: see `compare`.
        out: file for the decision, as JSON.
        force: whether a file that is there is replaced.
        progress: see `compare`.
        options: see `compare`.

    Raises:
        InputError: if something cannot be used; before anything is evaluated.
    """
    asked = GuardOptions(
        source=str(on) if isinstance(on, Path) else on,
        overrides=changes,
        task_options=task_options(options),
        run=Path(run),
        objective=objective,
        num_jobsets=num_jobsets,
        warmup=warmup,
        limits=limits,
        later=later,
        seed=seed,
        decode=decode,
        num_runners=num_runners,
        address=address,
    )
    file = None if out is None else new_file(out, force)
    decided = decide(asked, shown(progress))
    if file is not None:
        decided.write(file)
    return decided.report()


def _spec_of(policy: Policy) -> PolicySpec:
    """A policy that has no name on a command line; nothing is known of its training."""

    def make(protocol: EvaluationProtocol) -> PolicyGroup:
        # One that was learned may act in a world that differs in what does not matter to it.
        acting_in: Any = getattr(policy, "acting_in", lambda *_: policy)
        acting = acting_in(protocol.task.world, protocol.task.objective)
        return PolicyGroup(policy.name, (acting,))

    return PolicySpec(policy.name, make, named=False)
