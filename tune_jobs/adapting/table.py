"""What adapting a policy to one task was worth: its costs after some steps beside heuristics'."""

from collections.abc import Iterable, Sequence
from typing import Literal

import click

from cluster_env.core.seeding import Split
from cluster_env.evaluation import by_size, cost_of
from meta.adaptation import MetaPolicy, learned_policy
from meta.maml.steps import Parameters
from meta.scoring import TUNING_JOBSETS, Cost, baseline_of, costs_on, heuristic_costs
from meta.tasks import Task, describe
from rllib_configs.policy_files import Decode
from tune_jobs.comparing.table import column_of
from tune_jobs.terminal.tables import Row, Value, aligned, markdown

Keep = Literal["best", "last"]

SHOWN = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of steps that get a row, beside the last one."""


def tabulate(
    policy: MetaPolicy,
    task: Task,
    parameters: Sequence[Parameters],
    *,
    num_jobsets: int,
    num_episodes: int,
    shown: Iterable[int] = SHOWN,
    decode: Decode = "argmax",
    keep: Keep = "best",
) -> list[Row]:
    """Measures a policy before and after adaptation, and heuristics, on the same jobsets.

    Args:
        policy: what was adapted.
        task: what it was adapted to.
        parameters: after 0, 1, ... and all steps, see `meta.adaptation.adapt_parameters`.
        num_jobsets: held-out jobsets of the task that costs are means over.
        num_episodes: of a step.
        shown: numbers of steps that get a row, ascending; the last one always does.
        decode: how the policies act, see `rllib_configs.policies.LearnedPolicy`.
        keep: after how many steps the policy is kept: ``last``, all of them, or ``best``, those of
            the rows with the lowest cost on as many validation jobsets as heuristics are tuned on,
            the fewest of equals.

    Returns:
        A row for each number of steps (``step``), then one for each heuristic: ``cost``, and
        ``ratio``, the cost over that of the best baseline. Those of steps have ``kept``, 1 in the
        row of the policy that is kept and else 0, and ``validation_cost``.
    """
    last = len(parameters) - 1
    steps = [*(step for step in shown if step < last), last]
    policies = [
        learned_policy(policy, task, parameters[step], _name(step), decode) for step in steps
    ]
    trials = costs_on(policies, task, num_jobsets=TUNING_JOBSETS, split=Split.VALIDATION)
    best_step = min(zip(trials, steps, strict=True), key=lambda pair: pair[0].value)[1]
    kept = last if keep == "last" else best_step
    costs = costs_on(policies, task, num_jobsets=num_jobsets)
    heuristics = heuristic_costs(task, num_jobsets=num_jobsets)
    best = baseline_of(task.kind, heuristics).value
    metric = cost_of(task.objective)
    head: dict[str, Value] = {
        "task": task.name,
        "metric": metric.name,
        "label": metric.label,
        "jobsets": num_jobsets,
    }
    rows: list[Row] = [
        {
            **head,
            "step": step,
            "episodes": step * num_episodes,
            **_cells(cost, best),
            "validation_cost": trial.value,
            "kept": int(step == kept),
        }
        for step, cost, trial in zip(steps, costs, trials, strict=True)
    ]
    rows += [{**head, **_cells(cost, best)} for cost in heuristics.values()]
    return rows


def format_table(task: Task, rows: Sequence[Row]) -> str:
    """The rows of `tabulate` for people, under a heading."""
    heading = click.style(f"{task.name}: {describe(task)}", bold=True)
    metric = cost_of(task.objective)
    measured = f"{metric.label} on {rows[0]['jobsets']} held-out jobsets; lower is better"
    table = "\n".join(aligned(_lines(task, rows), names=1))
    return f"{heading}\n{measured}\n\n{table}"


def markdown_table(task: Task, rows: Sequence[Row]) -> str:
    """The same with the verdict, in Markdown."""
    label = cost_of(task.objective).label
    measured = f"{label} on {rows[0]['jobsets']} held-out jobsets; lower is better."
    words = f"**{verdict(task, rows)}** {describe(task)}. {measured}"
    return f"{words}\n\n{markdown(_lines(task, rows), names=1)}"


def _lines(task: Task, rows: Sequence[Row]) -> list[list[str]]:
    metric = cost_of(task.objective).name
    known = (*task.kind.price, *by_size(task.kind.headline, rows[0]))
    price = [(name, *column_of(name)) for name in known if name != metric]
    lines = [["policy", "cost", "over best heuristic", *(title for _, title, _ in price)]]
    lines += [
        [
            f"{row['policy']}{', kept' if row.get('kept') else ''}",
            f"{row['cost']:.4g}",
            f"{row['ratio']:.3f}",
            *(write(float(row[name])) for name, _, write in price),
        ]
        for row in rows
    ]
    if any(row["unfinished"] for row in rows):
        ends = ("unfinished", *(f"{row['unfinished']:,}" for row in rows))
        lines = [[*line, end] for line, end in zip(lines, ends, strict=True)]
    return lines


def verdict(task: Task, rows: Sequence[Row]) -> str:
    """What the policy that is kept costs beside the one before and the best heuristic."""
    adapted = [row for row in rows if "step" in row]
    kept = next(row for row in adapted if row["kept"])
    before, after, steps = adapted[0]["ratio"], kept["ratio"], int(kept["step"])
    against = f"{_percent(float(after) - 1)} than the best of {', '.join(task.kind.baselines)}"
    if not steps:
        better = "No step is better on validation jobsets. " if len(adapted) > 1 else ""
        return f"{better}The policy costs {against}."
    change = f"{_percent(float(after) / float(before) - 1)} than before"
    plural = "s" if steps > 1 else ""
    why = " (best on validation jobsets)" if kept is not adapted[-1] else ""
    return f"After {steps} step{plural}{why} the policy costs {change}, and {against}."


def kept_step(rows: Sequence[Row]) -> int:
    """After how many steps the policy is kept, of the rows of `tabulate`."""
    return next(int(row["step"]) for row in rows if row.get("kept"))


def _cells(cost: Cost, best: float) -> dict[str, Value]:
    return {
        "policy": cost.policy,
        "cost": cost.value,
        "ratio": cost.value / best if best else float("nan"),
        "unfinished": cost.num_unfinished,
        **cost.price,
    }


def _name(step: int) -> str:
    if step == 0:
        return "before adaptation"
    return f"after {step} step{'s' if step > 1 else ''}"


def _percent(change: float) -> str:
    return f"{abs(change):.1%} {'more' if change > 0 else 'less'}"
