"""What ``metasched adapt`` does: adapts a policy to one task, and says what that was worth."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cluster_env.core.errors import InputError
from meta.checks import check_numbers, require_features, require_scorer
from meta.tasks import Task, read_task
from rllib_configs.config.changes import changed_keys
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.policy_files import read_policy_config
from tune_jobs.commands.adapting import Adapt
from tune_jobs.commands.shared import Keep
from tune_jobs.measuring.choices import steady_operation
from tune_jobs.measuring.work import working
from tune_jobs.tables.frames import Row, plain, write_table
from tune_jobs.terminal.options import ADAPTATION_TABLE
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.running import compare_command
from tune_jobs.tracking.recording import annotate, record_result

if TYPE_CHECKING:
    from meta.adaptation import Adaptation


@dataclass(frozen=True)
class Adapted:
    """A policy that was adapted to a task, in steps that played the windows of a comparison."""

    task: Task
    adaptation: "Adaptation"
    warmup: int  # units of time at both ends of a window whose jobs do not count

    def save(self, folder: Path, step: int) -> None:
        """Writes the policy as it was after so many steps."""
        from meta.adaptation import save_adapted

        parameters = self.adaptation.parameters[step]
        save_adapted(self.adaptation.policy, self.task, parameters, folder)


def check_new(folder: Path | None) -> None:
    """Makes sure that a folder, if it is there, is empty.

    Raises:
        InputError: if it is not.
    """
    if (
        folder is not None
        and folder.exists()
        and not (folder.is_dir() and not any(folder.iterdir()))
    ):
        raise InputError(f"{folder} is not empty; take a new folder for the adapted policy")


def adapt(options: Adapt) -> Adapted:
    """Adapts a policy.

    Raises:
        InputError: if there is no policy, it cannot be adapted, or a number is out of range.
    """
    # Only now, because it imports PyTorch, which takes longer than all checks before.
    from meta.adaptation import adapt_policy, load_meta_policy

    policy = load_meta_policy(options.run, options.rate)
    if isinstance(options.task, Task):
        task, played, warmup = options.task, options.task, 0
    else:
        task = read_task(options.task, policy.task)
        played, warmup = in_steady_operation(task, options.task)
    adaptation = adapt_policy(
        policy,
        played,
        options.num_steps,
        num_episodes=options.num_episodes,
        num_jobsets=options.num_jobsets,
        seed=options.seed,
        warmup=warmup,
    )
    return Adapted(task, adaptation, warmup)


def in_steady_operation(task: Task, texts: Sequence[str]) -> tuple[Task, int]:
    """A task in the windows that a comparison takes, so that costs can be compared with its own.

    The texts are how it was asked for, see `meta.tasks.read_task`; who names the length of windows
    gets them so. The warm-up is units of time at both ends of a window whose jobs do not count.
    """
    said = changed_keys([f"task.{text}" for text in texts if "=" in text])
    steady, warmup = steady_operation(task, said)
    if not steady:
        return task, warmup
    changes = [
        f"{task.spec.presentation.options[name].key}={value}" for name, value in steady.items()
    ]
    return replace(read_task(changes, TaskSection.of(task), task.seed), name=task.name), warmup


def adapt_to_task(
    options: Adapt,
    *,
    num_held_out: int,
    keep: Keep,
    num_runners: int,
    as_json: bool,
    track: bool | None,
) -> None:
    """Adapts a policy and prints the table; keywords are options of the command alone.

    Raises:
        InputError: if policy, task or folder cannot be used.
    """
    out = None if options.out is None else Path(options.out)
    if track and out is None:
        raise InputError("--track records the table, so it needs --out FOLDER")
    check_new(out)
    run, changes = options.run, options.task
    config = read_policy_config(run)
    require_scorer(config, f"the policy in {run}")
    if not changes or isinstance(changes, Task):
        raise InputError("say what to adapt to, such as --task objective=makespan")
    task = read_task(changes, config.task.at_point())
    require_features(config, task.world, f"the policy in {run}")
    check_numbers(options.num_steps, options.num_episodes, options.num_jobsets, options.seed)
    from tune_jobs.adapting.table import format_table, kept_row, markdown_table, tabulate, verdict

    started = time.perf_counter()
    adapted = adapt(options)
    seconds = time.perf_counter() - started
    played = adapted.adaptation.task
    with working(num_runners, NoProgress() if as_json else Progress()) as work:
        rows = tabulate(
            adapted.adaptation,
            num_jobsets=num_held_out,
            num_episodes=options.num_episodes,
            warmup=adapted.warmup,
            decode=options.decode,
            keep=keep,
            work=work,
        )
    kept = kept_row(rows)
    note = markdown_table(played, rows)
    if out is not None:
        _write(out, adapted, int(kept["step"]), rows)
        if track:
            _track(out, options, keep, rows, note)
    if track is not False:
        with tempfile.TemporaryDirectory(prefix="metasched-adaptation-") as folder:
            table = Path(folder) / f"{datetime.now():%Y%m%d-%H%M%S}-{ADAPTATION_TABLE}"
            write_table(table, rows)
            annotate(Path(run), f"Adapted to {task.name}", note, {"adaptations": table})
    if as_json:
        print_json(plain(rows))
        return
    click.echo(format_table(played, rows))
    click.echo(f"\n{verdict(played, rows)} The steps took {seconds:.1f} s.")
    if out is not None:
        what = "adapted policy" if kept["changed"] else "policy as it was"
        click.echo(f"Wrote the {what} and {ADAPTATION_TABLE} to {out}")
    better = kept["changed"] and float(kept["cost"]) <= float(rows[0]["cost"])
    if options.num_steps and not better:
        more = f"--jobsets {2 * options.num_jobsets} --episodes {2 * options.num_episodes}"
        moved = any(step.changed for step in adapted.adaptation.steps)
        other = ", or with another --rate" if moved else ""
        click.echo(f"Next     the same with more jobsets per step, {more}{other}")
    elif out is None:
        click.echo("Next     the same with --out FOLDER keeps the adapted policy")
    else:
        click.echo(f"Next     {compare_command([*task.spec.baselines, out])}")


def _track(out: Path, options: Adapt, keep: str, rows: Sequence[Row], note: str) -> None:
    """Records the adaptation as a run below the policy's; MLflow's step is that of it."""
    curves = [
        (int(row["step"]), {name: float(row[name]) for name in ("ratio", "cost")})
        if "step" in row
        else (0, {f"reference/{str(row['policy']).partition(':')[0]}": float(row["ratio"])})
        for row in rows
    ]
    made_with = {name: getattr(options, name) for name in ("seed", "rate", "decode")}
    measured = {name: rows[0][name] for name in ("task", "metric", "jobsets")}
    record_result(
        out,
        "adaptation",
        f"{out.name} adaptation",
        params={"run": str(options.run), **made_with, "keep": keep, **measured},
        curves=curves,
        files=[out / ADAPTATION_TABLE],
        beside=Path(options.run),
        note=note,
    )


def _write(out: Path, adapted: Adapted, step: int, rows: Sequence[Row]) -> None:
    """Writes policy and table; the folder appears when all of it is there."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}", dir=out.parent) as aside:
            folder = Path(aside) / out.name
            adapted.save(folder, step)
            write_table(folder / ADAPTATION_TABLE, rows)
            os.replace(folder, out)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror or error}") from None
