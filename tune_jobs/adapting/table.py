"""What adapting a policy to one task was worth: its costs after some steps beside heuristics'."""

from collections.abc import Sequence
from itertools import pairwise

import click

from cluster_env.core.policy import Policy
from cluster_env.core.seeding import Split
from cluster_env.evaluation import by_size, nonnegative_cost
from meta.adaptation import Adaptation
from meta.costs import (
    TUNING_JOBSETS,
    Cost,
    Keep,
    all_heuristics,
    baseline_of,
    costs_on,
    heuristic_costs,
)
from meta.tasks import Task, describe
from rllib_configs.policy_files import Decode
from tune_jobs.measuring.markdown import side_cells, side_titles
from tune_jobs.measuring.table import heads_of
from tune_jobs.measuring.wording import best_of, compared
from tune_jobs.measuring.work import Work
from tune_jobs.tables.columns import digits_of
from tune_jobs.tables.frames import Row, Value
from tune_jobs.tables.printing import aligned, markdown

SHOWN = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of steps that get a row, beside the last one."""


def tabulate(
    adaptation: Adaptation,
    *,
    num_jobsets: int,
    num_episodes: int,
    warmup: int = 0,
    decode: Decode = "argmax",
    keep: Keep = "best",
    work: Work | None = None,
) -> list[Row]:
    """Measures a policy before and after adaptation, and heuristics, on the same jobsets.

    Args:
        adaptation: of a policy to a task.
        num_jobsets: held-out jobsets of the task that costs are means over.
        num_episodes: of a step.
        warmup: see `meta.costs.costs_on`.
        decode: how the policies act, see `rllib_configs.policy_files.LearnedPolicy`.
        keep: after how many steps the policy is kept: ``last``, all of them, or ``best``, those of
            the rows, 0 among them, with the lowest cost on as many validation jobsets as heuristics
            are tuned on, the fewest of equals.
        work: what measures, a policy at a time.

    Returns:
        A row for each number of steps (``step``), then one for each heuristic: ``cost``, and
        ``ratio``, the cost over that of the best of these heuristics. Those of steps have ``kept``,
        1 in the row of the policy that is kept and else 0, and ``validation_cost``; ``changed``,
        how many of the steps so far changed anything, and ``reason``, why the others did not.
    """
    task, adapted = adaptation.task, adaptation.steps
    last = len(adapted) - 1
    steps = [*(step for step in SHOWN if step < last), last]
    named = {step: f"after {step} step{'s' if step > 1 else ''}" for step in steps if step}
    policies = [
        adaptation.policy.acting(
            task, adapted[step].parameters, named.get(step, "before adaptation"), decode
        )
        for step in steps
    ]
    names = all_heuristics(task)
    pieces: list[Policy | str] = [*policies, *names]
    shared, work = (task, num_jobsets, warmup), work or Work()
    found = list(work.measure(_measure, shared, pieces, unit="policy", name=_name))
    costs, trials = [one[0] for one in found], [one[1] for one in found[: len(policies)]]
    best_step = min(zip(trials, steps, strict=True), key=lambda pair: pair[0].value)[1]
    kept = last if keep == "last" else best_step
    heuristics = dict(zip(names, costs[len(policies) :], strict=True))
    best = baseline_of(task.spec, heuristics, names).value
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
        for step, cost, trial in zip(steps, costs[: len(policies)], trials, strict=True)
    ]
    rows += [{**head, **_cells(cost, best)} for cost in heuristics.values()]
    return rows


def _measure(shared: tuple[Task, int, int], policy: Policy | str) -> list[Cost]:
    """The costs of a policy on held-out and validation jobsets; of a heuristic's name, the first.

    A piece of work.
    """
    task, num_jobsets, warmup = shared
    if isinstance(policy, str):
        return [heuristic_costs(task, [policy], num_jobsets=num_jobsets, warmup=warmup)[policy]]
    return [
        *costs_on([policy], task, num_jobsets=num_jobsets, warmup=warmup),
        *costs_on(
            [policy], task, num_jobsets=TUNING_JOBSETS, split=Split.VALIDATION, warmup=warmup
        ),
    ]


def _name(policy: Policy | str, _: list[Cost]) -> str:
    return policy if isinstance(policy, str) else policy.name


def format_table(task: Task, rows: Sequence[Row]) -> str:
    """The rows of `tabulate` for people, under a heading."""
    heading = click.style(f"{task.name}: {describe(task)}", bold=True)
    names = _side_metrics(task, rows)
    heads, units = heads_of(task.spec, names)
    lines = [["policy", "cost", "over best rule", *heads]]
    lines += [["", "", "", *units]] if any(units) else []
    lines += _cells_of(task, rows, names)
    return "\n".join([heading, *_measured(task, rows), "", *aligned(lines, names=1)])


def markdown_table(task: Task, rows: Sequence[Row]) -> str:
    """The same with the verdict, in Markdown."""
    names = _side_metrics(task, rows)
    heads = ["Policy", "Cost", "Over best rule", *side_titles(task.spec, names)]
    words = f"**{verdict(task, rows)}** {describe(task)}. {'; '.join(_measured(task, rows))}."
    return f"{words}\n\n{markdown([heads, *_cells_of(task, rows, names)])}"


def _measured(task: Task, rows: Sequence[Row]) -> list[str]:
    """What costs are means of, and over what; the windows of recorded jobs."""
    first = rows[0]
    words = [f"{first['label']} on {first['jobsets']} held-out jobsets; lower is better"]
    if first["warmup"]:
        words.append(task.spec.presentation.describe({**task.columns(), "warmup": first["warmup"]}))
    return words


def _side_metrics(task: Task, rows: Sequence[Row]) -> list[str]:
    """Names of the columns behind the cost; unfinished jobs where there are any."""
    metric = nonnegative_cost(task.objective).name
    names = [*task.spec.side_metrics, *by_size(task.spec.headline, rows[0])]
    cut = any(row["unfinished"] for row in rows)
    return [name for name in names if name != metric] + (["unfinished"] if cut else [])


def _cells_of(task: Task, rows: Sequence[Row], names: Sequence[str]) -> list[list[str]]:
    steps = [row for row in rows if "step" in row]
    above = enumerate(pairwise(steps), start=1)
    repeated = {k for k, (one, two) in above if one["changed"] == two["changed"]}
    digits = digits_of(float(row["cost"]) for row in rows)
    return [
        [
            f"{row['policy']}{', as above' if k in repeated else ''}"
            f"{', kept' if row.get('kept') else ''}",
            f"{row['cost']:,.{digits}f}",
            f"{row['ratio']:.3f}",
            *side_cells(task.spec, row, names),
        ]
        for k, row in enumerate(rows)
    ]


def verdict(task: Task, rows: Sequence[Row]) -> str:
    """What the policy that is kept costs beside the one before and the best rule of the table.

    Steps that moved nothing are named with their reason, and a policy that became worse is.
    """
    steps = [row for row in rows if "step" in row]
    before, kept, last = steps[0], kept_row(rows), steps[-1]
    num_steps, changed = int(last["step"]), int(last["changed"])
    plural = "s" if num_steps > 1 else ""
    words = []
    if changed < num_steps:
        unchanged = f"{num_steps - changed} of {num_steps} step{plural} changed nothing"
        words.append(f"{unchanged}, because {last['reason']}.")
    heuristics = [row for row in rows if "step" not in row]
    rule = min(heuristics, key=lambda row: float(row["cost"]))
    names = [str(row["policy"]).partition(":")[0] for row in heuristics]
    against = f"{compared(float(kept['ratio']), 1.0)} {rule['policy']}, {best_of(names)}"
    if kept["changed"]:
        plural = "s" if int(kept["step"]) > 1 else ""
        why = " (best on validation jobsets)" if kept is not last else ""
        change = compared(float(kept["cost"]), float(before["cost"]))
        words.append(
            f"After {kept['step']} step{plural}{why} the policy costs {change} before, and "
            f"{against}."
        )
    elif changed:
        words.append(
            "No step was better on validation jobsets, so the policy is kept unchanged. It "
            f"costs {against}."
        )
    else:
        words.append(f"The policy is unchanged and costs {against}.")
    if float(kept["cost"]) > float(before["cost"]):
        words.append(
            "Warning: on held-out jobsets the kept policy is worse than before adaptation."
        )
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
