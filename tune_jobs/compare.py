"""``metasched compare``: learned policies and heuristics on the same unseen jobsets."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig
    from tune_jobs.comparing.policy_specs import Decode, PolicySpec, TrainedRun
    from tune_jobs.terminal.tables import Row

TABLE = "comparison.csv"
FIGURE = "comparison.png"
STEPS_PER_WINDOW = 10
"""How many times as long as the window an episode may be at least, where --window is given."""


def task_options(command: Any) -> Any:
    """Options that say what policies are evaluated on; `figure` has them too."""
    options = [
        click.option(
            "--config",
            "source",
            metavar="PRESET|FILE",
            help="Cluster, jobs and rules; by default those of the first run, else of deeprm.",
        ),
        click.option(
            "--set",
            "overrides",
            metavar="KEY=VALUE",
            multiple=True,
            help="Change a setting of it, for instance task.workload.window=200.",
        ),
        click.option(
            "--rules",
            metavar="NAME",
            help="Rules of DeepRM's paper or of its released code (paper, released), or others "
            "that are registered; by default the config's.",
        ),
        click.option(
            "--window",
            type=click.IntRange(1),
            help="Steps in which jobs may arrive, by default the config's; episodes then get at "
            "least ten times as long, unless --set task.max_time says how long.",
        ),
        click.option(
            "--warmup",
            type=click.IntRange(0),
            default=0,
            help="Measure a cluster in steady operation: leave out the jobs that arrive in so many "
            "first and last steps of the window.",
        ),
        click.option(
            "--jobsets",
            type=click.IntRange(1),
            default=1000,
            help="Unseen jobsets of each load.",
        ),
        click.option(
            "--episodes", type=click.IntRange(1), default=1, help="Episodes of each jobset."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0),
            default=0,
            help="Seed of the jobsets and of the policies' random numbers.",
        ),
        click.option(
            "--decode",
            type=click.Choice(["sample", "argmax", "tuned"]),
            default="sample",
            help="How learned policies choose; argmax may leave jobs waiting for ever; tuned is "
            "argmax, more or less eager to start jobs as is best on validation jobsets.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _read_values(context: click.Context, option: click.Parameter, text: str | None) -> list[float]:
    return [] if text is None else parse_values(text)


at_option = click.option(
    "--at",
    "--loads",
    "at",
    metavar="VALUE,...",
    callback=_read_values,
    help="Values of the setting that the world's comparisons vary, in DeepRM loads: 0.7 for 70 %. "
    "By default that of the config. A trace has its own.",
)


@click.command(name="compare", context_settings=CONTEXT)
@click.option(
    "--policies",
    "names",
    metavar="NAME,...",
    multiple=True,
    help="Heuristics, run directories and globs of them; can be repeated. By default all "
    "heuristics of the world.",
)
@at_option
@click.option(
    "--objective",
    help="What decides who is best, also 'W NAME + W NAME'; by default the config's objective.",
)
@click.option(
    "--guard",
    is_flag=True,
    help="Add guarded lines: each learned policy only where it is proven better than the best "
    "heuristic, elsewhere that heuristic.",
)
@task_options
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Folder for {TABLE} and {FIGURE}.",
)
@click.option("--track", is_flag=True, help="Record the comparison in MLflow; needs --out.")
def command(
    names: tuple[str, ...],
    at: list[float],
    objective: str | None,
    guard: bool,
    source: str | None,
    overrides: tuple[str, ...],
    rules: str | None,
    window: int | None,
    warmup: int,
    jobsets: int,
    episodes: int,
    seed: int,
    decode: "Decode",
    as_json: bool,
    out: Path | None,
    track: bool,
) -> None:
    """Compare policies on the same unseen jobsets.

    Heuristics are random, sjf, packer, tetris and hold. tetris and hold take a number, as in
    tetris:0.002 and hold:8; without one, the best of a sweep on validation jobsets is used. Run
    directories that differ in their seed alone make one line.

    \b
    Examples:
      metasched compare --loads 0.7,1.1,1.3
      metasched compare --policies 'sjf,tetris,runs/deeprm-*' --loads 0.7 --jobsets 200
      metasched compare --policies sjf,tetris,runs/MY_RUN --loads 1.1 --out comparison --json
      metasched compare --loads 0.7 --window 500 --warmup 100 --jobsets 200
      metasched compare --policies sjf,hold,runs/MY_RUN --loads 0.3,1.5 --guard
    """
    from tune_jobs.comparing.comparison import compare
    from tune_jobs.comparing.guarding import CALIBRATION_JOBSETS
    from tune_jobs.comparing.policy_specs import find_runs, is_heuristic, load_runs, split_names
    from tune_jobs.comparing.protocol import EvaluationProtocol
    from tune_jobs.comparing.table import format_rows
    from tune_jobs.terminal.progress import NoProgress, Progress
    from tune_jobs.terminal.tables import write_table

    if track and out is None:
        raise InputError("--track records the table and the figure, so it needs --out FOLDER")
    policies = split_names(names)
    if names and not policies:
        raise InputError("--policies names nothing; try --policies random")
    runs = load_runs(find_runs(name for name in policies if not is_heuristic(name)), decode)
    config = choose_config(source, overrides, rules, runs, window)
    protocol = EvaluationProtocol(
        config.task.build(config.name, seed),
        metric_of(objective, config),
        num_jobsets=jobsets,
        num_episodes=episodes,
        warmup=warmup,
        num_guard_jobsets=CALIBRATION_JOBSETS if guard else 0,
    )
    rows = compare(
        protocol,
        order_specs(policies or protocol.task.kind.heuristics.names(), runs, decode),
        protocol.values(at),
        NoProgress() if as_json else Progress(),
    )
    click.echo(json.dumps(plain(rows), indent=1) if as_json else format_rows(rows))
    if out is None:
        return
    write_table(out / TABLE, rows)
    _draw(out)
    if not as_json:
        click.echo(f"\nWrote {out / TABLE} and {out / FIGURE}")
    if track:
        _track(out, rows, seed)


def parse_values(text: str) -> list[float]:
    """Reads ``0.7,1.1``.

    Raises:
        InputError: if a part is no number.
    """
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values:
        raise InputError(f"--at takes numbers like 0.7,1.1, not '{text}'")
    return values


def choose_config(
    source: str | None,
    overrides: Sequence[str],
    rules: str | None,
    runs: "Sequence[TrainedRun]",
    window: int | None = None,
) -> "ExperimentConfig":
    """The config that says what policies are evaluated on.

    Args:
        source: preset or file; by default the config of the first run, else the preset deeprm.
        overrides: texts of the form ``key=value``.
        rules: name of the rules, if not the config's.
        runs: the trained policies that are compared.
        window: steps in which jobs may arrive, if not the config's. Episodes are then cut at
            `STEPS_PER_WINDOW` times as many at the earliest, unless an override says when.

    Raises:
        InputError: if the config cannot be used.
    """
    from rllib_configs.loading import load_config

    def load(changes: Sequence[str]) -> "ExperimentConfig":
        if source is None and runs:
            return load_config(runs[0].config_file, changes)
        return load_config(source or "deeprm", changes)

    changes = [*overrides, *([f"task.rules={rules}"] if rules else [])]
    if window is None:
        return load(changes)
    given = [text.partition("=")[0].strip() for text in overrides]
    if "task.workload.window" in given:
        raise InputError("--window and --set task.workload.window say the same; give one of them")
    # How long episodes are is asked with a window that no config refuses as too long for them.
    max_time = load([*changes, f"task.workload.window={min(window, 2)}"]).task.max_time
    enough = STEPS_PER_WINDOW * window
    if "task.max_time" not in given and max_time < enough:
        changes.append(f"task.max_time={enough}")
    return load([*changes, f"task.workload.window={window}"])


def order_specs(
    policies: Sequence[str], runs: "Sequence[TrainedRun]", decode: "Decode"
) -> "list[PolicySpec]":
    """Heuristics in the order in which they were named, then what was learned."""
    from tune_jobs.comparing.policy_specs import heuristic_spec, is_heuristic, learned_specs

    heuristics = [heuristic_spec(name) for name in policies if is_heuristic(name)]
    return [*heuristics, *learned_specs(runs, decode)]


def metric_of(objective: str | None, config: "ExperimentConfig") -> str:
    """Name of the metric of an objective."""
    from cluster_env.evaluation import objective_metric
    from cluster_env.objectives import get_objective

    chosen = config.task.build_objective() if objective is None else get_objective(objective)
    return objective_metric(chosen).name


def plain(rows: "Sequence[Row]") -> list[dict[str, object]]:
    """Rows for JSON, which has no NaN."""
    return [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _draw(out: Path) -> None:
    from tune_jobs.figures.comparison import draw
    from tune_jobs.figures.style import save

    save(draw(out / TABLE), out / FIGURE)


def _track(out: Path, rows: "Sequence[Row]", seed: int) -> None:
    """Records the comparison as a run of its own; MLflow's step is the value in percent."""
    from tune_jobs.comparing.table import COLUMNS
    from tune_jobs.comparing.wording import value_of
    from tune_jobs.tracking.recording import record_result

    def means(row: "Row") -> dict[str, float]:
        names = dict.fromkeys((*COLUMNS, str(row["metric"]), "unfinished"))
        return {f"{row['key']}/{name}": float(row[name]) for name in names if name in row}

    shared = ("world", "jobs", "metric", "jobsets", "episodes", "warmup")
    record_result(
        out,
        "comparison",
        f"compare {out.name}",
        params={"seed": seed, **{name: rows[0][name] for name in shared}},
        curves=[(_percent(value_of(row)), means(row)) for row in rows],
        files=(out / TABLE, out / FIGURE),
    )


def _percent(value: float) -> int:
    """MLflow's step, a whole number; 0 in a world without an axis."""
    return 0 if math.isnan(value) else round(100 * value)


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
