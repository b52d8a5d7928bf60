"""What ``metasched adapt`` does: adapts a policy to one task, and says what that was worth."""

import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from meta.checks import check_numbers, require_features, require_scorer
from meta.tasks import Task, read_task
from rllib_configs.policy_files import Decode, read_policy_config
from tune_jobs.adapting.windows import in_steady_operation
from tune_jobs.terminal.options import ADAPTATION_TABLE
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.running import program
from tune_jobs.terminal.tables import Row, plain, write_table
from tune_jobs.tracking.recording import annotate, record_result

if TYPE_CHECKING:
    from meta.adaptation import MetaPolicy
    from meta.maml.steps import Parameters
    from tune_jobs.adapting.table import Keep


def adapt_to_task(
    *,
    run: Path,
    texts: Sequence[str],
    trace: Path | None,
    objective: str | None,
    num_steps: int,
    num_episodes: int,
    num_jobsets: int,
    rate: float | None,
    num_held_out: int,
    decode: Decode,
    keep: "Keep",
    seed: int,
    out: Path | None,
    as_json: bool,
    track: bool | None,
) -> None:
    """Adapts a policy and prints the table; the arguments are the options of the command.

    Raises:
        InputError: if policy, task or folder cannot be used.
    """
    if track and out is None:
        raise InputError("--track records the table, so it needs --out FOLDER")
    if out is not None and out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; take a new folder for the adapted policy")
    config = read_policy_config(run)
    require_scorer(config, f"the policy in {run}")
    home = config.task.at_point()
    changes = [*texts, *_in_short(trace, objective)]
    if not changes:
        raise InputError("say what to adapt to, with --task, --trace or --objective")
    task = read_task(changes, home)
    require_features(config, task.world, f"the policy in {run}")
    check_numbers(num_steps, num_episodes, num_jobsets, seed)
    # Only now, because it imports PyTorch, which takes longer than all checks.
    from meta.adaptation import adapt_policy, load_meta_policy
    from tune_jobs.adapting.table import (
        format_table,
        kept_row,
        markdown_table,
        tabulate,
        verdict,
    )

    policy = load_meta_policy(run, rate)
    started = time.perf_counter()
    played, warmup = in_steady_operation(task, changes)
    adaptation = adapt_policy(
        policy,
        played,
        num_steps,
        num_episodes=num_episodes,
        num_jobsets=num_jobsets,
        seed=seed,
        warmup=warmup,
    )
    seconds = time.perf_counter() - started
    rows = tabulate(
        adaptation,
        num_jobsets=num_held_out,
        num_episodes=num_episodes,
        warmup=warmup,
        decode=decode,
        keep=keep,
    )
    kept = kept_row(rows)
    if out is not None:
        _write(out, policy, task, adaptation.parameters[int(kept["step"])], rows)
        if track:
            made_with = {
                "run": str(run),
                "seed": seed,
                "rate": rate,
                "decode": decode,
                "keep": keep,
            }
            _track(out, run, rows, made_with, markdown_table(played, rows))
    if track is not False:
        with tempfile.TemporaryDirectory(prefix="metasched-adaptation-") as folder:
            table = Path(folder) / f"{datetime.now():%Y%m%d-%H%M%S}-{ADAPTATION_TABLE}"
            write_table(table, rows)
            note = markdown_table(played, rows)
            annotate(run, f"Adapted to {task.name}", note, {"adaptations": table})
    if as_json:
        print_json(plain(rows))
        return
    click.echo(format_table(played, rows))
    click.echo(f"\n{verdict(played, rows)} The steps took {seconds:.1f} s.")
    if out is not None:
        what = "adapted policy" if kept["changed"] else "policy as it was"
        click.echo(f"Wrote the {what} and {ADAPTATION_TABLE} to {out}")
    if num_steps and not (kept["changed"] and float(kept["cost"]) <= float(rows[0]["cost"])):
        more = f"--jobsets {2 * num_jobsets} --episodes {2 * num_episodes}"
        other = ", or with another --rate" if any(step.changed for step in adaptation.steps) else ""
        click.echo(f"Next     the same with more jobsets per step, {more}{other}")
    elif out is None:
        click.echo("Next     the same with --out FOLDER keeps the adapted policy")
    else:
        policies = shlex.quote(",".join([*task.spec.baselines, str(out)]))
        click.echo(f"Next     {program()} compare --policies {policies}")


def _in_short(trace: Path | None, objective: str | None) -> list[str]:
    """What a log and an objective change, as `read_task` takes it."""
    found = [] if objective is None else [f"objective={objective}"]
    return found if trace is None else [*found, f"workload.trace={trace.absolute()}"]


def _track(out: Path, run: Path, rows: Sequence[Row], params: dict[str, object], note: str) -> None:
    """Records the adaptation as a run below the policy's; MLflow's step is that of it."""
    curves = [
        (int(row["step"]), {name: float(row[name]) for name in ("ratio", "cost")})
        if "step" in row
        else (0, {f"reference/{str(row['policy']).partition(':')[0]}": float(row["ratio"])})
        for row in rows
    ]
    record_result(
        out,
        "adaptation",
        f"{out.name} adaptation",
        params={**params, **{name: rows[0][name] for name in ("task", "metric", "jobsets")}},
        curves=curves,
        files=[out / ADAPTATION_TABLE],
        beside=run,
        note=note,
    )


def _write(
    out: Path, policy: "MetaPolicy", task: Task, parameters: "Parameters", rows: Sequence[Row]
) -> None:
    """Writes policy and table; the folder appears when all of it is there."""
    from meta.adaptation import save_adapted

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}", dir=out.parent) as aside:
            folder = Path(aside) / out.name
            save_adapted(policy, task, parameters, folder)
            write_table(folder / ADAPTATION_TABLE, rows)
            os.replace(folder, out)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror or error}") from None
