"""``metasched adapt``: a trained policy, a task, a few steps, and how much better it is then."""

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from meta.adaptation import MetaPolicy
    from meta.maml.steps import Parameters
    from meta.scoring import Cost
    from meta.tasks import Task
    from tune_jobs.tables import Row, Value

TABLE = "adaptation.csv"
_SHOWN = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@click.command(name="adapt", context_settings=CONTEXT)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--task",
    "texts",
    metavar="TASK",
    multiple=True,
    required=True,
    help="FAMILY:INDEX, a YAML file, or KEY=VALUE; can be repeated to change a task.",
)
@click.option("--steps", type=click.IntRange(0, 1000), default=3, help="Steps of adaptation.")
@click.option(
    "--episodes", type=click.IntRange(2), default=20, help="Episodes of a step, over its jobsets."
)
@click.option("--jobsets", type=click.IntRange(1), default=4, help="Jobsets of a step.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Inner rate of all parameters; by default what the run has learned, else its config's, "
    "else 1.",
)
@click.option(
    "--evaluate",
    "held_out",
    type=click.IntRange(1),
    default=100,
    help="Held-out jobsets of the task that costs are means over.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    help="Seed of the adaptation's jobsets and actions.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"New folder for the adapted policy and for {TABLE}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def command(
    run: Path,
    texts: tuple[str, ...],
    steps: int,
    episodes: int,
    jobsets: int,
    rate: float | None,
    held_out: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Adapt the policy of RUN to a task, and compare it before and after with heuristics.

    RUN is the folder of a run that trained a scorer of slots, by meta-training (maml) or by PPO, or
    one that this command wrote. Settings that TASK does not name are those that RUN was trained
    with: a YAML file holds settings of the section task, such as objective and workload, and
    workload.trace is a CSV file of your own jobs. Steps play jobsets of the task's training split,
    and the table is about others.

    \b
    Examples:
      metasched adapt runs/MY_RUN --task objectives:3
      metasched adapt runs/MY_RUN --task objective=makespan --task workload.load=1.1 --steps 10
      metasched adapt runs/MY_RUN --task 'objective=class_slowdown(0.1, 1, 10)' --out adapted
      metasched adapt runs/MY_RUN --task my_task.yaml --task workload.trace=jobs.csv
      metasched compare --policies sjf,tetris,runs/MY_RUN,adapted
    """
    from meta.adaptation import adapt_parameters, load_meta_policy
    from meta.tasks import describe, read_task
    from tune_jobs.compare import plain

    if out is not None and out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; take a new folder for the adapted policy")
    policy = load_meta_policy(run, rate)
    task = read_task(texts, policy.task)
    started = time.perf_counter()
    parameters = adapt_parameters(
        policy, task, steps, episodes=episodes, jobsets=jobsets, seed=seed
    )
    seconds = time.perf_counter() - started
    rows = _rows(policy, task, parameters, held_out, episodes)
    if out is not None:
        _write(out, policy, task, parameters[-1], rows)
    if as_json:
        click.echo(json.dumps(plain(rows), indent=1))
        return
    click.echo(click.style(f"{task.name}: {describe(task.section)}", bold=True))
    click.echo(f"{task.metric.label} on {held_out} held-out jobsets; lower is better\n")
    click.echo(_table(rows))
    click.echo(f"\n{_verdict(rows, steps)} The steps took {seconds:.1f} s.")
    if out is not None:
        click.echo(f"Wrote the adapted policy and {TABLE} to {out}")


def _rows(
    policy: "MetaPolicy",
    task: "Task",
    parameters: "Sequence[Parameters]",
    held_out: int,
    episodes: int,
) -> "list[Row]":
    """A row for each step that is shown, then one for each heuristic."""
    from meta.adaptation import learned_policy
    from meta.scoring import bar_of, costs_on, heuristic_costs

    last = len(parameters) - 1
    shown = [step for step in _SHOWN if step < last] + [last]
    policies = [learned_policy(policy, task, parameters[step], _name(step)) for step in shown]
    costs = costs_on(policies, task, jobsets=held_out)
    heuristics = heuristic_costs(task, jobsets=held_out)
    best = bar_of(heuristics).value
    head: dict[str, Value] = {"task": task.name, "metric": task.metric.name}
    rows: list[Row] = [
        {**head, "step": step, "episodes": step * episodes, **_cells(cost, best)}
        for step, cost in zip(shown, costs, strict=True)
    ]
    rows += [{**head, **_cells(cost, best)} for cost in heuristics.values()]
    return rows


def _cells(cost: "Cost", best: float) -> "dict[str, Value]":
    return {
        "policy": cost.policy,
        "cost": cost.value,
        "ratio": cost.value / best if best else float("nan"),
        "unfinished": cost.unfinished,
    }


def _name(step: int) -> str:
    if step == 0:
        return "before adaptation"
    return f"after {step} step{'s' if step > 1 else ''}"


def _table(rows: "Sequence[Row]") -> str:
    """Policies with their costs, and these over that of the best of tetris, sjf and packer."""
    lines = [("policy", "cost", "over best heuristic", "unfinished")]
    lines += [
        (
            str(row["policy"]),
            f"{row['cost']:.4g}",
            f"{row['ratio']:.3f}",
            f"{row['unfinished']:,}",
        )
        for row in rows
    ]
    widths = [max(len(line[k]) for line in lines) for k in range(4)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _verdict(rows: "Sequence[Row]", steps: int) -> str:
    """One sentence about before, after and the best heuristic."""
    ratios = [float(row["ratio"]) for row in rows if "step" in row]
    before, after = ratios[0], ratios[-1]
    against = f"{_percent(after - 1)} than the best of tetris, sjf and packer"
    if not steps:
        return f"The policy costs {against}."
    change = f"{_percent(after / before - 1)} than before"
    return f"After {steps} step{'s' * (steps > 1)} the policy costs {change}, and {against}."


def _percent(change: float) -> str:
    return f"{abs(change):.1%} {'more' if change > 0 else 'less'}"


def _write(
    out: Path, policy: "MetaPolicy", task: "Task", parameters: "Parameters", rows: "Sequence[Row]"
) -> None:
    """Writes policy and table; the folder appears when all of it is there."""
    from meta.adaptation import save_adapted
    from tune_jobs.tables import write_table

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}", dir=out.parent) as aside:
            folder = Path(aside) / out.name
            save_adapted(policy, task, parameters, folder)
            write_table(folder / TABLE, rows)
            os.replace(folder, out)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror or error}") from None


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
