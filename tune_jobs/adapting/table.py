"""What adapting a policy to one task was worth: its costs after some steps beside heuristics'."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import click

from cluster_env.core.seeding import Split
from cluster_env.evaluation import by_size, nonnegative_cost
from meta.adaptation import Adaptation
from meta.costs import TUNING_JOBSETS, Cost, baseline_of, costs_on, heuristic_costs
from meta.tasks import Task, describe
from rllib_configs.policy_files import Decode
from tune_jobs.comparing.table import column_of
from tune_jobs.terminal.tables import Row, Value, aligned, markdown

Keep = Literal["best", "last"]

SHOWN = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of steps that get a row, beside the last one."""


def tabulate(
    adaptation: Adaptation,
    *,
    num_jobsets: int,
    num_episodes: int,
    shown: Iterable[int] = SHOWN,
    warmup: int = 0,
    decode: Decode = "argmax",
    keep: Keep = "best",
) -> list[Row]:
    """Measures a policy before and after adaptation, and heuristics, on the same jobsets.

    Args:
        adaptation: of a policy to a task.
        num_jobsets: held-out jobsets of the task that costs are means over.
        num_episodes: of a step.
        shown: numbers of steps that get a row, ascending; the last one always does.
        warmup: see `meta.costs.costs_on`.
        decode: how the policies act, see `rllib_configs.policies.LearnedPolicy`.
        keep: after how many steps the policy is kept: ``last``, all of them, or ``best``, those of
            the rows, 0 among them, with the lowest cost on as many validation jobsets as heuristics
            are tuned on, the fewest of equals.

    Returns:
        A row for each number of steps (``step``), then one for each heuristic: ``cost``, and
        ``ratio``, the cost over that of the best baseline. Those of steps have ``kept``, 1 in the
        row of the policy that is kept and else 0, and ``validation_cost``; ``changed``, how many of
        the steps so far changed anything, and ``reason``, why the others did not.
    """
    task, adapted = adaptation.task, adaptation.steps
    last = len(adapted) - 1
    steps = [*(step for step in shown if step < last), last]
    policies = [
        adaptation.policy.acting(task, adapted[step].parameters, _name(step), decode)
        for step in steps
    ]
    trials = costs_on(
        policies, task, num_jobsets=TUNING_JOBSETS, split=Split.VALIDATION, warmup=warmup
    )
    best_step = min(zip(trials, steps, strict=True), key=lambda pair: pair[0].value)[1]
    kept = last if keep == "last" else best_step
    costs = costs_on(policies, task, num_jobsets=num_jobsets, warmup=warmup)
    heuristics = heuristic_costs(task, num_jobsets=num_jobsets, warmup=warmup)
    best = baseline_of(task.spec, heuristics).value
    metric = nonnegative_cost(task.objective)
    head: dict[str, Value] = {
        "task": task.name,
        "metric": metric.name,
        "label": metric.label.replace("steps", task.spec.presentation.time_unit),
        "jobsets": num_jobsets,
        "warmup": warmup,
    }
    rows: list[Row] = [
        {
            **head,
            "step": step,
            "episodes": step * num_episodes,
            **_cells(cost, best),
            "validation_cost": trial.value,
            "kept": int(step == kept),
            "changed": sum(one.changed for one in adapted[: step + 1]),
            "reason": " or ".join(dict.fromkeys(s.reason for s in adapted[: step + 1] if s.reason)),
        }
        for step, cost, trial in zip(steps, costs, trials, strict=True)
    ]
    rows += [{**head, **_cells(cost, best)} for cost in heuristics.values()]
    return rows


def format_table(task: Task, rows: Sequence[Row]) -> str:
    """The rows of `tabulate` for people, under a heading."""
    heading = click.style(f"{task.name}: {describe(task)}", bold=True)
    table = "\n".join(aligned(_lines(task, rows), names=1))
    return "\n".join([heading, *_measured(task, rows), "", table])


def markdown_table(task: Task, rows: Sequence[Row]) -> str:
    """The same with the verdict, in Markdown."""
    words = f"**{verdict(task, rows)}** {describe(task)}. {'; '.join(_measured(task, rows))}."
    return f"{words}\n\n{markdown(_lines(task, rows), names=1)}"


def _measured(task: Task, rows: Sequence[Row]) -> list[str]:
    """What costs are means of, and over what; the windows of recorded jobs."""
    first = rows[0]
    words = [f"{first['label']} on {first['jobsets']} held-out jobsets; lower is better"]
    if first["warmup"]:
        words.append(task.spec.presentation.describe({**task.columns(), "warmup": first["warmup"]}))
    return words


def _lines(task: Task, rows: Sequence[Row]) -> list[list[str]]:
    metric = nonnegative_cost(task.objective).name
    known = (*task.spec.side_metrics, *by_size(task.spec.headline, rows[0]))
    side = [(name, *column_of(name)) for name in known if name != metric]
    repeated = _repeated(rows)
    lines = [["policy", "cost", "over best baseline", *(title for _, title, _ in side)]]
    lines += [
        [
            f"{row['policy']}{repeated.get(k, '')}{', kept' if row.get('kept') else ''}",
            f"{row['cost']:.4g}",
            f"{row['ratio']:.3f}",
            *(write(float(row[name])) for name, _, write in side),
        ]
        for k, row in enumerate(rows)
    ]
    if any(row["unfinished"] for row in rows):
        ends = ("unfinished", *(f"{row['unfinished']:,}" for row in rows))
        lines = [[*line, end] for line, end in zip(lines, ends, strict=True)]
    return lines


def _repeated(rows: Sequence[Row]) -> dict[int, str]:
    """Remarks on rows of steps that moved nothing since the row above, by index."""
    steps = [row for row in rows if "step" in row]
    above = enumerate(pairwise(steps), start=1)
    return {k: ", as above" for k, (one, two) in above if one["changed"] == two["changed"]}


def verdict(task: Task, rows: Sequence[Row]) -> str:
    """What the policy that is kept costs beside the one before and the best baseline.

    Steps that moved nothing are named with their reason, and a policy that became worse is.
    """
    steps = [row for row in rows if "step" in row]
    before, kept, last = steps[0], kept_row(rows), steps[-1]
    num_steps, changed = int(last["step"]), int(last["changed"])
    plural = "s" if num_steps > 1 else ""
    words = []
    if changed < num_steps:
        unchanged = f"{num_steps - changed} of {num_steps} step{plural} moved nothing"
        words.append(f"{unchanged}, because {last['reason']}.")
    against = f"{_compared(kept['ratio'], 1.0)} the best of {', '.join(task.spec.baselines)}"
    if kept["changed"]:
        plural = "s" if int(kept["step"]) > 1 else ""
        why = " (best on validation jobsets)" if kept is not last else ""
        change = _compared(kept["cost"], before["cost"])
        words.append(
            f"After {kept['step']} step{plural}{why} the policy costs {change} before, and "
            f"{against}."
        )
    elif changed:
        words.append(
            "No step was better on validation jobsets; the policy is kept as it was, and costs "
            f"{against}."
        )
    else:
        words.append(f"The policy is as it was, and costs {against}.")
    if float(kept["cost"]) > float(before["cost"]):
        words.append("Warning: on held-out jobsets the policy that is kept is worse than before.")
    return " ".join(words)


def kept_row(rows: Sequence[Row]) -> Row:
    """The row of the steps after which the policy is kept, of the rows of `tabulate`."""
    return next(row for row in rows if row.get("kept"))


def _cells(cost: Cost, best: float) -> dict[str, Value]:
    return {
        "policy": cost.policy,
        "cost": cost.value,
        "ratio": cost.value / best if best else float("nan"),
        "unfinished": cost.num_unfinished,
        **cost.side_metrics,
    }


def _name(step: int) -> str:
    if step == 0:
        return "before adaptation"
    return f"after {step} step{'s' if step > 1 else ''}"


def _compared(cost: Value, other: Value) -> str:
    """``12.5% less than``."""
    one, two = float(cost), float(other)
    if one == two:
        return "as much as"
    share = f"{abs(one / two - 1):.1%} " if two else ""
    return f"{share}{'more' if one > two else 'less'} than"
