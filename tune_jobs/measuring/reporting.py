"""What ``metasched compare`` does: a comparison that is shown, kept and recorded."""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from cluster_env.core.errors import InputError
from tune_jobs.commands.comparing import Compare
from tune_jobs.measuring.choices import heuristics_of, protocol_of
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.guarding import CALIBRATION_JOBSETS
from tune_jobs.measuring.markdown import markdown_rows
from tune_jobs.measuring.policy_specs import (
    PolicySpec,
    heuristic_spec,
    learned_specs,
    split_names,
)
from tune_jobs.measuring.protocol import UNSEEN
from tune_jobs.measuring.rollout_specs import is_rollout, rollout_runs, rollout_spec
from tune_jobs.measuring.table import COMPARED, format_rows
from tune_jobs.measuring.trained_runs import TrainedRun, find_runs, is_heuristic, load_runs
from tune_jobs.measuring.wording import jobs_in, spec_of_row, value_of
from tune_jobs.measuring.work import working
from tune_jobs.tables.frames import Row, plain, write_table
from tune_jobs.terminal.options import COMPARISON_FIGURE, COMPARISON_TABLE
from tune_jobs.terminal.output import print_json, silent
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.tracking.recording import annotate, record_result
from tune_jobs.tracking.view import AXIS_TAG


def evaluate_policies(
    options: Compare,
    progress: Progress,
    own: Sequence[PolicySpec] = (),
    kept: Path | None = None,
) -> tuple[list[Row], list[TrainedRun]]:
    """The rows of a comparison and the runs in it; `own` are policies that have no name.

    What a file keeps is not evaluated again, see `tune_jobs.measuring.work.Kept`.

    Raises:
        InputError: if something cannot be compared; before anything is evaluated.
    """
    names = [str(policy) for policy in options.policies if isinstance(policy, str | Path)]
    # Others start while this one reads.
    with working(options.num_runners, progress, kept, options.address) as work:
        rollouts = [name for name in names if is_rollout(name)]
        others = [name for name in names if not is_heuristic(name) and not is_rollout(name)]
        of_runs = options.on is None and len(others) > 1  # their world is that of the first
        runs = load_runs(
            find_runs(others, None if of_runs else partial(heuristics_of, options)), options.decode
        )
        bases = [run for name in rollouts for run in rollout_runs(name, options.decode)]
        guarding = CALIBRATION_JOBSETS if options.guard else 0
        protocol = protocol_of(options, [*runs, *bases], guarding)
        every = protocol.task.spec.heuristics.names()
        heuristics = [name for name in names or (() if own else every) if is_heuristic(name)]
        learned = learned_specs(runs, options.decode)
        rows = compare(
            protocol,
            [
                *map(heuristic_spec, heuristics),
                *learned,
                *(rollout_spec(name, options.decode) for name in rollouts),
                *own,
            ],
            protocol.values(options.at),
            work,
            split_names(options.protocols) or [UNSEEN],
        )
    return rows, runs


def report_comparison(
    options: Compare,
    *,
    as_json: bool,
    out: Path | None,
    track: bool | None,
    draw: Callable[[Path, Path], None],
) -> None:
    """Compares policies, prints the table and keeps it; keywords are options of the command.

    Raises:
        InputError: if something cannot be compared; before anything is evaluated.
    """
    if track and out is None:
        raise InputError("--track records the table and the figure, so it needs --out FOLDER")
    names = split_names(map(str, options.policies))
    if options.policies and not names:
        raise InputError("--policies names nothing; try --policies random")
    progress, say = (NoProgress(), silent) if as_json else (Progress(), click.echo)
    table = None if out is None else out / COMPARISON_TABLE
    kept = None if table is None else table.with_suffix(".jsonl")
    rows, runs = evaluate_policies(replace(options, policies=names), progress, kept=kept)
    if as_json:
        print_json(plain(rows))
    say(format_rows(rows, bold=True))
    if track is not False:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        with tempfile.TemporaryDirectory(prefix="metasched-comparison-") as folder:
            stamped = Path(folder) / f"{stamp}-{COMPARISON_TABLE}"
            write_table(stamped, rows)
            for run in runs:
                annotate(run.path, "Comparison", markdown_rows(rows), {"comparisons": stamped})
    if out is None or table is None:
        say("\nNext     the same with --out FOLDER keeps the table and draws it")
        return
    write_table(table, rows)
    images = _draw(out, rows, draw)
    say(f"\nWrote {' and '.join(str(path) for path in (table, *images))}")
    if track:
        _track(out, rows)


def _draw(out: Path, rows: Sequence[Row], draw: Callable[[Path, Path], None]) -> list[Path]:
    """Draws each protocol by itself; where there are several, from tables of their own."""
    names = list(dict.fromkeys(str(row["protocol"]) for row in rows))
    table, image = out / COMPARISON_TABLE, out / COMPARISON_FIGURE
    if len(names) == 1:
        draw(table, image)
        return [image]
    images = []
    for name in names:
        own = table.with_stem(f"{table.stem}-{name}")
        write_table(own, [row for row in rows if row["protocol"] == name])
        images.append(image.with_stem(f"{image.stem}-{name}"))
        draw(own, images[-1])
    return images


def _track(out: Path, rows: Sequence[Row]) -> None:
    """Records the comparison as a run, with runs below it for the places of the axis."""
    names = dict.fromkeys((*COMPARED, str(rows[0]["metric"]), "unfinished"))
    parts: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    for row in rows:
        axis, value = spec_of_row(row).presentation.axis, value_of(row)
        tags = {"protocol": str(row["protocol"])}
        if axis is not None and not math.isnan(value):
            tags |= {axis.name: f"{value:.4g}", AXIS_TAG: axis.name}
        means = {f"{row['key']}/{name}": float(row[name]) for name in names if name in row}
        parts.setdefault(f"{jobs_in(row)}, {row['protocol']}", (tags, {}))[1].update(means)
    params = ("seed", "world", "jobs", "metric", "jobsets", "episodes", "warmup")
    record_result(
        out,
        "comparison",
        f"{out.name} comparison",
        params={name: rows[0][name] for name in params},
        parts=parts,
        files=(out / COMPARISON_TABLE, out / COMPARISON_FIGURE),
        note=markdown_rows(rows),
    )
