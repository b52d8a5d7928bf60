"""``metasched study``: how runs adapt to unseen tasks, for the adaptation figures."""

from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cluster_env.core.errors import InputError
from tune_jobs.cli import CONTEXT

if TYPE_CHECKING:
    from meta.study import StudyPlan
    from rllib_configs.policies import Decode
    from tune_jobs.adapting.rows import Source
    from tune_jobs.terminal.progress import Progress

N = TypeVar("N", int, float)


@click.command(name="study", context_settings=CONTEXT)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option(
    "--family",
    default="objectives",
    metavar="NAME|FILE",
    help="Where the tasks come from: objectives, priorities, workloads, mixed, or a YAML file.",
)
@click.option(
    "--tasks",
    type=click.IntRange(1),
    default=40,
    help="Held-out tasks, as many of each kind of objective.",
)
@click.option("--task-seed", type=click.IntRange(0), default=0, help="Seed of the tasks.")
@click.option("--seeds", type=click.IntRange(1), default=3, help="Adaptations of each task.")
@click.option(
    "--steps", default="0,1,2,3,5,10", metavar="K,...", help="Steps after which to evaluate."
)
@click.option(
    "--episodes", type=click.IntRange(2), default=20, help="Episodes of a step, over its jobsets."
)
@click.option("--jobsets", type=click.IntRange(1), default=4, help="Jobsets of a step.")
@click.option(
    "--evaluate",
    "evaluation_jobsets",
    type=click.IntRange(1),
    default=100,
    help="Held-out jobsets of a task that costs are means over.",
)
@click.option(
    "--decode",
    type=click.Choice(["argmax", "sample"]),
    default="argmax",
    help="How policies act: the likeliest action, or one that is drawn.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Inner rate of all runs; by default what a run has learned, else the best of --rates.",
)
@click.option(
    "--rates",
    default="0.0625,0.125,0.25,0.5,1,2,4,8",
    metavar="RATE,...",
    help="Inner rates to choose from, on validation tasks.",
)
@click.option(
    "--rate-tasks", type=click.IntRange(1), default=15, help="Validation tasks to choose on."
)
@click.option(
    "--scratch",
    type=click.IntRange(0),
    default=0,
    help="So many policies without training, like the first run, are measured too.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes, of one thread each.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("adaptation"),
    help="Folder for the rows, one file for each run and family.",
)
@click.option("--track", is_flag=True, help="Record means and rows in MLflow, beside the runs.")
def command(
    runs: tuple[str, ...],
    family: str,
    tasks: int,
    task_seed: int,
    seeds: int,
    steps: str,
    episodes: int,
    jobsets: int,
    evaluation_jobsets: int,
    decode: "Decode",
    rate: float | None,
    rates: str,
    rate_tasks: int,
    scratch: int,
    jobs: int,
    out: Path,
    track: bool,
) -> None:
    """Measure how runs adapt to held-out tasks of a family.

    Each run is adapted to the same tasks from the same jobsets, and costs are divided by that of
    the best of tetris, sjf and packer on the task. What a run is (joint training, first-order MAML
    and so on) is read from its config; runs that differ in their seed alone are one method. Runs of
    DeepRM's own network go on with REINFORCE, one update a step. What has been measured is not
    measured again.

    \b
    Examples:
      metasched study 'runs/maml-*' 'runs/joint-*' --family objectives
      metasched study 'runs/*' --family priorities --scratch 3 --jobs 2
      metasched figure adaptation --rows adaptation
    """
    from cluster_env.core.seeding import Split
    from meta.study import StudyPlan, adapter
    from meta.tasks import get_distribution
    from tune_jobs.adapting.rows import sources_of
    from tune_jobs.comparing.policy_specs import find_runs, split_names
    from tune_jobs.terminal.progress import Progress

    found = find_runs(split_names(runs))
    if not found:
        raise InputError("name the runs to measure, for instance 'runs/maml-*'")
    plan = StudyPlan(
        num_tasks=tasks,
        task_seed=task_seed,
        num_seeds=seeds,
        steps=_numbers("--steps", steps, int),
        num_episodes=episodes,
        num_jobsets=jobsets,
        num_evaluation_jobsets=evaluation_jobsets,
        rates=_numbers("--rates", rates, float),
        num_rate_tasks=rate_tasks,
        decode=decode,
    )
    sources = sources_of(found, scratch, rate)
    first = plan.split(get_distribution(family), Split.HELD_OUT)[0]
    for source in sources:  # so that what cannot be measured is known before anything is
        adapter(source.load(), plan)(first, (0,), 0)
    paths = _measure_all(sources, family, plan, out, jobs, Progress())
    click.echo(f"Wrote {', '.join(str(path) for path in paths)}")
    if track:
        _track(paths, found[0])
    click.echo(f"Next: metasched figure adaptation --rows {out}")


def _track(paths: Sequence[Path], run: Path) -> None:
    """Records rows as a run of the family; MLflow's step is that of the adaptation."""
    from statistics import fmean

    from tune_jobs.terminal.tables import read_table
    from tune_jobs.tracking.recording import record_result

    curves = []
    for path in paths:
        ratios: dict[int, list[float]] = {}
        for row in read_table(path, ["step", "ratio"]):
            ratios.setdefault(int(row["step"]), []).append(float(row["ratio"]))
        curves += [(step, {f"{path.stem}/ratio": fmean(found)}) for step, found in ratios.items()]
    folder = paths[0].parent
    record_result(folder, "study", f"study {folder.name}", curves=curves, files=paths, beside=run)


def _measure_all(
    sources: "list[Source]",
    family: str,
    plan: "StudyPlan",
    out: Path,
    jobs: int,
    progress: "Progress",
) -> list[Path]:
    """Measures the heuristics, then all sources; the order of the files is that of the sources."""
    from tune_jobs.adapting.rows import measure_heuristics, measure_source

    each = plan.num_tasks * plan.num_seeds
    progress.start(plan.num_tasks + each * len(sources), unit="adaptation")
    done = 0

    def report(text: str) -> None:
        nonlocal done
        done += 0 if "rate" in text else 1
        progress.step(done, text)

    measure_heuristics(family, plan, out, report)
    if jobs == 1:
        paths = [measure_source(source, family, plan, out, report) for source in sources]
    else:
        paths = _measure_apart(sources, family, plan, out, jobs, progress)
    progress.close()
    return paths


def _measure_apart(
    sources: "list[Source]",
    family: str,
    plan: "StudyPlan",
    out: Path,
    jobs: int,
    progress: "Progress",
) -> list[Path]:
    """Measures each source in one of several processes."""
    import multiprocessing

    from tune_jobs.adapting.rows import measure_source

    each = plan.num_tasks * plan.num_seeds
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures: list[Future[Path]] = [
            pool.submit(measure_source, source, family, plan, out) for source in sources
        ]
        try:
            for count, future in enumerate(as_completed(futures), 1):
                progress.step(plan.num_tasks + count * each, future.result().stem)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _numbers(option: str, text: str, kind: type[N]) -> tuple[N, ...]:
    """Reads ``1,2,3``.

    Raises:
        InputError: if a part is no number.
    """
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"{option} takes numbers with commas between, not '{text}'") from None


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
