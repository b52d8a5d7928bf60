"""What adapting a policy to one task was worth: its costs after some steps beside heuristics'."""

from collections.abc import Iterable, Sequence

import click

from cluster_env.evaluation import by_size, cost_of
from meta.adaptation import MetaPolicy, learned_policy
from meta.maml.steps import Parameters
from meta.scoring import Cost, baseline_of, costs_on, heuristic_costs
from meta.tasks import Task, describe
from rllib_configs.policy_files import Decode
from tune_jobs.comparing.table import column_of
from tune_jobs.terminal.tables import Row, Value, aligned, markdown

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

    Returns:
        A row for each number of steps (``step``), then one for each heuristic: ``cost``, and
        ``ratio``, the cost over that of the best baseline.
    """
    last = len(parameters) - 1
    steps = [*(step for step in shown if step < last), last]
    policies = [
        learned_policy(policy, task, parameters[step], _name(step), decode) for step in steps
    ]
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
        {**head, "step": step, "episodes": step * num_episodes, **_cells(cost, best)}
        for step, cost in zip(steps, costs, strict=True)
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
            str(row["policy"]),
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
    """One sentence about before, after and the best heuristic."""
    adapted = [row for row in rows if "step" in row]
    before, after, steps = adapted[0]["ratio"], adapted[-1]["ratio"], adapted[-1]["step"]
    against = f"{_percent(float(after) - 1)} than the best of {', '.join(task.kind.baselines)}"
    if not steps:
        return f"The policy costs {against}."
    change = f"{_percent(float(after) / float(before) - 1)} than before"
    plural = "s" if int(steps) > 1 else ""
    return f"After {steps} step{plural} the policy costs {change}, and {against}."


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
