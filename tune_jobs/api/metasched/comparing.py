"""Comparisons of policies on the same unseen jobsets, and what may decide."""

from pathlib import Path
from typing import Any

import pandas as pd

from cluster_env.core.policy import Policy
from cluster_env.evaluation import PolicyGroup
from metasched.arguments import new_file
from metasched.functions import shown, takes_with_world
from tune_jobs.commands.comparing import Compare, Guard
from tune_jobs.measuring.guard_report import decide
from tune_jobs.measuring.policy_specs import PolicySpec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.reporting import evaluate_policies
from tune_jobs.measuring.table import format_rows
from tune_jobs.tables.frames import Row, frame_of
from tune_jobs.tables.report import Report


class Comparison(list[Row]):
    """Rows of a comparison, whose repr is the table that the command prints."""

    def __repr__(self) -> str:
        return format_rows(self) if self else "[]"

    def to_frame(self) -> pd.DataFrame:
        """The rows as a data frame."""
        return frame_of(self).infer_objects()


@takes_with_world(Compare)
def compare(options: Compare) -> Comparison:
    """Evaluates policies on the same unseen jobsets, as ``metasched compare`` does.

    >>> rows = compare(["sjf", "tetris", "runs/mine"], at=[0.7, 1.1], num_jobsets=200)
    >>> print(format_rows(rows))

    Policies may be objects, too. Windows of recorded jobs are made long, as by the command, unless
    `changes` say their length; a task that is given is taken as it is, with its own seed.

    Returns:
        A row for each value and policy, as a list that shows itself as a table and becomes a data
        frame by ``to_frame()``. ``row["slowdown"]`` is a mean over all jobs, and
        ``row["slowdown_low"]`` and ``row["slowdown_high"]`` are the ends of its 95 % interval;
        ``row["difference"]`` is that to the best policy on the same jobsets. Other keys are the
        columns that ``metasched compare --out`` writes. Units: time steps, shares of 1.

    Raises:
        InputError: if a policy or a value cannot be used; before anything is evaluated.
    """
    own = [_spec_of(one) for one in options.policies if not isinstance(one, str | Path)]
    rows, _ = evaluate_policies(options, shown(options.progress), own)
    return Comparison(rows)


@takes_with_world(Guard)
def guard(options: Guard) -> Report:
    """Decides between a learned policy and the best heuristic, as ``compare --decide`` does.

    >>> decision = guard("deeprm-operation", num_jobsets=100)
    >>> decision.data["chosen"], decision["candidates"]

    Raises:
        InputError: if something cannot be used; before anything is evaluated.
    """
    file = None if options.out is None else new_file(options.out, options.force)
    decided = decide(options, shown(options.progress))
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
