"""``metasched adapt``: a trained policy, a task, a few steps, and how much better it is then."""

import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from tune_jobs.adapting.table import TABLE, format_table, tabulate, verdict
from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from meta.adaptation import MetaPolicy
    from meta.maml.steps import Parameters
    from meta.tasks import Task
    from rllib_configs.policies import Decode
    from tune_jobs.terminal.tables import Row


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
    "--decode",
    type=click.Choice(["argmax", "sample"]),
    default="argmax",
    help="How adapted policies act: the likeliest action, or one that is drawn.",
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
@click.option("--track", is_flag=True, help="Record the table in MLflow, beside RUN; needs --out.")
def command(
    run: Path,
    texts: tuple[str, ...],
    steps: int,
    episodes: int,
    jobsets: int,
    rate: float | None,
    held_out: int,
    decode: "Decode",
    seed: int,
    out: Path | None,
    as_json: bool,
    track: bool,
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
    from meta.tasks import read_task
    from tune_jobs.compare import plain

    if track and out is None:
        raise InputError("--track records the table, so it needs --out FOLDER")
    if out is not None and out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; take a new folder for the adapted policy")
    policy = load_meta_policy(run, rate)
    task = read_task(texts, policy.task)
    started = time.perf_counter()
    parameters = adapt_parameters(
        policy, task, steps, num_episodes=episodes, num_jobsets=jobsets, seed=seed
    )
    seconds = time.perf_counter() - started
    rows = tabulate(policy, task, parameters, jobsets=held_out, episodes=episodes, decode=decode)
    if out is not None:
        _write(out, policy, task, parameters[-1], rows)
        if track:
            _track(out, run, rows, {"run": str(run), "seed": seed, "rate": rate, "decode": decode})
    if as_json:
        click.echo(json.dumps(plain(rows), indent=1))
        return
    click.echo(format_table(task, rows))
    click.echo(f"\n{verdict(rows)} The steps took {seconds:.1f} s.")
    if out is not None:
        click.echo(f"Wrote the adapted policy and {TABLE} to {out}")


def _track(out: Path, run: Path, rows: "Sequence[Row]", params: dict[str, object]) -> None:
    """Records the adaptation as a run of its own; MLflow's step is that of the adaptation."""
    from tune_jobs.tracking.recording import record_result

    curves = [
        (int(row["step"]), {name: float(row[name]) for name in ("ratio", "cost")})
        if "step" in row
        else (0, {f"reference/{str(row['policy']).partition(':')[0]}": float(row["ratio"])})
        for row in rows
    ]
    record_result(
        out,
        "adaptation",
        f"adapt {out.name}",
        params={**params, **{name: rows[0][name] for name in ("task", "metric", "jobsets")}},
        curves=curves,
        files=[out / TABLE],
        beside=run,
    )


def _write(
    out: Path, policy: "MetaPolicy", task: "Task", parameters: "Parameters", rows: "Sequence[Row]"
) -> None:
    """Writes policy and table; the folder appears when all of it is there."""
    from meta.adaptation import save_adapted
    from tune_jobs.terminal.tables import write_table

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
