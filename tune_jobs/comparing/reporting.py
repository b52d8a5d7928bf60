"""What ``metasched compare`` does: a comparison that is shown, kept and recorded."""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from cluster_env.core.errors import InputError
from cluster_env.worlds import get_spec
from tune_jobs.comparing.choices import (
    choose_comparison,
    metric_of,
    order_specs,
    parse_limits,
    parse_values,
    task_for,
)
from tune_jobs.comparing.comparison import compare
from tune_jobs.comparing.guarding import CALIBRATION_JOBSETS
from tune_jobs.comparing.policy_specs import split_names
from tune_jobs.comparing.protocol import UNSEEN, EvaluationProtocol
from tune_jobs.comparing.table import COLUMNS, format_rows, markdown_rows
from tune_jobs.comparing.trained_runs import Decode, find_runs, is_heuristic, load_runs
from tune_jobs.comparing.wording import jobs_in, spec_of_row, value_of
from tune_jobs.terminal.options import COMPARISON_FIGURE, COMPARISON_TABLE
from tune_jobs.terminal.output import print_json
from tune_jobs.terminal.progress import NoProgress, Progress
from tune_jobs.terminal.spreading import spreading
from tune_jobs.terminal.tables import Row, plain, write_table
from tune_jobs.tracking.recording import annotate, record_result
from tune_jobs.tracking.view import AXIS_TAG


def report_comparison(
    *,
    names: Sequence[str],
    at: str | None,
    objective: str | None,
    guard: bool,
    source: str | None,
    overrides: Sequence[str],
    task_options: Mapping[str, str],
    warmup: int | None,
    limits: Sequence[str],
    num_jobsets: int,
    num_episodes: int,
    seed: int,
    decode: Decode,
    as_json: bool,
    wide: bool,
    protocols: Sequence[str],
    out: Path | None,
    track: bool | None,
    num_runners: int,
    address: str | None,
    draw: Callable[[Path, Path], None],
) -> None:
    """Compares policies and prints the table; the arguments are the options of the command.

    Raises:
        InputError: if something cannot be compared; before anything is evaluated.
    """
    if track and out is None:
        raise InputError("--track records the table and the figure, so it needs --out FOLDER")
    policies = split_names(names)
    if names and not policies:
        raise InputError("--policies names nothing; try --policies random")
    values = [] if at is None else parse_values(at)
    progress = NoProgress() if as_json else Progress()
    # Others start while this one reads.
    with spreading(num_runners, address, progress.say) as spread:
        runs = load_runs(find_runs(name for name in policies if not is_heuristic(name)), decode)
        config, steps = choose_comparison(source, overrides, task_options, runs, warmup)
        protocol = EvaluationProtocol(
            task_for(objective, config, seed),
            metric_of(objective, config),
            num_jobsets=num_jobsets,
            num_episodes=num_episodes,
            warmup=steps,
            limits=parse_limits(limits, get_spec(config.task.world.kind)),
            num_guard_jobsets=CALIBRATION_JOBSETS if guard else 0,
        )
        rows = compare(
            protocol,
            order_specs(policies or protocol.task.spec.heuristics.names(), runs, decode),
            protocol.values(values),
            progress,
            [name for text in protocols for name in text.split(",") if name] or [UNSEEN],
            spread,
        )
    if as_json:
        print_json(plain(rows))
    else:
        click.echo(format_rows(rows, wide))
    if track is not False:
        _annotate([run.path for run in runs], rows)
    if out is None:
        if not as_json:
            click.echo("\nNext     the same with --out FOLDER keeps the table and draws it")
        return
    table = out / COMPARISON_TABLE
    write_table(table, rows)
    images = _draw(out, rows, draw)
    if not as_json:
        click.echo(f"\nWrote {' and '.join(str(path) for path in (table, *images))}")
    if track:
        _track(out, rows, seed)


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


def _annotate(runs: Sequence[Path], rows: Sequence[Row]) -> None:
    """Adds the comparison to the descriptions and the artifacts of the recorded runs in it."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    with tempfile.TemporaryDirectory(prefix="metasched-comparison-") as folder:
        table = Path(folder) / f"{stamp}-{COMPARISON_TABLE}"
        write_table(table, rows)
        for run in runs:
            annotate(run, "Comparison", markdown_rows(rows), {"comparisons": table})


def _track(out: Path, rows: Sequence[Row], seed: int) -> None:
    """Records the comparison as a run, with runs below it for the places of the axis."""

    def means(row: Row) -> dict[str, float]:
        names = dict.fromkeys((*COLUMNS, str(row["metric"]), "unfinished"))
        return {f"{row['key']}/{name}": float(row[name]) for name in names if name in row}

    parts: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    for row in rows:
        axis, value = spec_of_row(row).presentation.axis, value_of(row)
        at = {} if axis is None or math.isnan(value) else {axis.name: f"{value:.4g}"}
        tags = {**at, **({AXIS_TAG: axis.name} if axis and at else {})}
        tags["protocol"] = str(row["protocol"])
        name = f"{jobs_in(row)}, {row['protocol']}"
        parts.setdefault(name, (tags, {}))[1].update(means(row))
    shared = ("world", "jobs", "metric", "jobsets", "episodes", "warmup")
    record_result(
        out,
        "comparison",
        f"{out.name} comparison",
        params={"seed": seed, **{name: rows[0][name] for name in shared}},
        parts=parts,
        files=(out / COMPARISON_TABLE, out / COMPARISON_FIGURE),
        note=markdown_rows(rows),
    )
