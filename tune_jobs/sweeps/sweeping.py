"""Runs a sweep: checks, starts, stops and resumes it."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_env.core.errors import InputError
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.processes.head import watching_head
from tune_jobs.processes.ray_session import check_placement, ray_session, resolve_address
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import SweepFolder, SweepWork, create_sweep, find_work
from tune_jobs.sweeps.points import check_cpus, check_sweep, num_trials
from tune_jobs.sweeps.progress_table import ProgressTable
from tune_jobs.sweeps.results import resume_command, write_results
from tune_jobs.terminal.running import num_local_cpus
from tune_jobs.terminal.signals import StopRequest
from tune_jobs.tracking import Tracker
from tune_jobs.tracking.recording import DrawFigure, tracked, where_to_look

if TYPE_CHECKING:
    from tune_jobs.sweeps.callback import SweepCallback


@dataclass(frozen=True)
class SweepResult:
    """What became of a sweep.

    Of the time that the slots for trials had since the start of the command, a share was spent in
    iterations and evaluations.
    """

    folder: SweepFolder
    counts: dict[str, int]  # of trials: finished, stopped, failed, or left to do
    share: float
    wall_s: float  # from the start to the last result
    num_slots: int  # trials at a time
    exit_status: int = 0  # 1 if a trial failed; 130 or 143 if a signal stopped the sweep
    recorded: str | None = None  # MLflow's server, or the command that shows what is recorded


def run_sweep(
    sweep: Sweep | SweepFolder,
    *,
    runs: Path = Path("runs"),
    path: Path | None = None,
    address: str | None = None,
    table: ProgressTable | None = None,
    draw: DrawFigure | None = None,
) -> SweepResult:
    """Runs all trials, or those that are left of a sweep that was interrupted.

    A new sweep has a folder of its own below `runs`, or `path`; for the address see
    `tune_jobs.processes.ray_session.ray_session`. By default nobody draws the figure of a sweep
    that has ended.

    Raises:
        InputError: before anything has started, if the sweep cannot run.
    """
    started = time.monotonic()
    definition = sweep if isinstance(sweep, Sweep) else sweep.sweep
    config = _checked(definition, address)
    total = num_trials(definition)
    table = table or ProgressTable(total, definition.metric, definition.mode)
    with ExitStack() as stack:
        if isinstance(sweep, Sweep):
            folder = create_sweep(sweep, runs, path)
            stack.callback(folder.discard_if_unused)
        else:
            folder = sweep
            folder.lock()
        stack.callback(folder.unlock)
        stack.callback(table.close)
        work = find_work(folder)
        verb = "Starting" if isinstance(sweep, Sweep) else "Resuming"
        table.say(f"{verb} {folder.path}: {work.num_trials} of {total} trials to do")
        if work.num_trials:
            stack.enter_context(ray_session(config, address))
            stack.enter_context(watching_head(resume_command(folder)))
        about = {"kind": "sweep", "seed": definition.seed, "search": definition.search}
        tracker = stack.enter_context(tracked(config, folder.path, about))
        tracker.params({"sweep": definition.to_dict()})
        tracker.artifact(folder.path / "sweep.yaml")
        # It imports Ray, which must have been started.
        from tune_jobs.sweeps.callback import SweepCallback

        callback = SweepCallback(folder, tracker, table)
        num_slots, stopped = _run_left(folder, work, config, callback, table)
        wall_s = callback.ended_at - started
        share = callback.busy_s / (num_slots * wall_s) if callback.busy_s else 0.0
        counts, status = _finish(folder, tracker, draw, share, stopped)
        is_tracked = config.tracking.enabled
        recorded = where_to_look(folder.path.parent, config.tracking.uri) if is_tracked else None
        return SweepResult(folder, counts, share, wall_s, num_slots, status, recorded)


def _run_left(
    folder: SweepFolder,
    work: SweepWork,
    config: ExperimentConfig,
    callback: "SweepCallback",
    table: ProgressTable,
) -> tuple[int, int]:
    """Runs the trials that are left; gives trials at a time, and the status after a signal."""
    from tune_jobs.sweeps.tuning import run_trials  # imports Ray, too

    for record in work.over:
        table.put(record)
    num_slots = 1
    with StopRequest(
        lambda name: table.say(f"{name}: stopping all trials (once more stops at once)")
    ) as stop:
        try:
            if work.num_trials:
                num_slots = run_trials(folder, work, config, callback, stop)
        except InputError:
            raise
        except BaseException as error:
            how = "Failed" if isinstance(error, Exception) else "Stopped at once"
            table.say(f"{how}. Resume with: {resume_command(folder)}")
            raise
        finally:
            callback.close()
    if callback.failure is not None:
        raise callback.failure
    return num_slots, stop.exit_status


def _checked(sweep: Sweep, address: str | None) -> ExperimentConfig:
    """The config of a trial; all take the same of a cluster.

    Raises:
        InputError: if they cannot be trained, or there are too few CPUs.
    """
    config = check_sweep(sweep)[0]
    sweep.strategy.check_installed()
    if resolve_address(address) is None:
        check_cpus(config, num_local_cpus())
    else:
        check_placement(config, address)
    return config


def _finish(
    folder: SweepFolder, tracker: Tracker, draw: DrawFigure | None, share: float, stop: int
) -> tuple[dict[str, int], int]:
    """Writes table, figure and best configs, and ends the sweep's run in MLflow.

    Returns:
        Counts of the trials, and the exit status, which is `stop` after a signal.
    """
    written = write_results(folder)
    statuses = [trial.file.status for trial in folder.started()]
    counts = {name: statuses.count(name) for name in ("finished", "stopped", "failed")}
    counts["left"] = num_trials(folder.sweep) - counts["finished"] - counts["stopped"]
    status = stop or int(counts["failed"] > 0)
    for path in written:
        tracker.artifact(path)
    if len(written) > 1 and draw is not None:
        draw("sweep", folder, tracker)
    tracker.metrics({**counts, "training_share": share}, 0)
    tracker.finish("killed" if stop else "failed" if status else "finished")
    return counts, status
