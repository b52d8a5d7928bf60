"""What ``metasched sync`` does: ends runs whose process is gone, and copies to a server."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from cluster_env.core.errors import Failure, InputError, shortened
from rllib_configs.config.schema import TrackingSection
from rllib_configs.config.secrets import hide_secrets
from rllib_configs.policy_files import read_policy_config
from tune_jobs.tracking.copying import Copy, lock_of
from tune_jobs.tracking.model import may_be_model
from tune_jobs.tracking.places import local_store, server_uri, tracking_dir
from tune_jobs.tracking.process import is_gone
from tune_jobs.tracking.run_file import RUN_FILE, RunFile, read_run_file
from tune_jobs.tracking.store import LocalStore, StoreAway, escapes

ReadRows = Callable[[Path], Iterable[tuple[int, Mapping[str, float]]]]
"""Reads the table of metrics of a run directory: steps and metrics."""


@dataclass(frozen=True)
class LostRuns:
    """Names of runs that had not ended and are KILLED now.

    ``elsewhere`` is the host of their process, if nobody here can see whether it still lives.
    """

    killed: tuple[str, ...] = ()
    elsewhere: str = ""


def send_records(
    run_dir: Path,
    tracking_uri: str | None,
    gone: bool,
    register: str | None,
    read_rows: ReadRows,
) -> None:
    """Completes the local record of a run, copies it to a server, and says where to.

    Args:
        run_dir: folder of a run that was tracked.
        tracking_uri: MLflow server or database, by default the environment's.
        gone: whether the user says that the process of the run has ended.
        register: name in MLflow's registry of which the run's policy becomes a new version.
        read_rows: reads what a run whose process was killed has in its own table.

    Raises:
        InputError: if there are no records, or another process is at it.
        Failure: if the local store does not work.
        Exit: with status 1, if the server takes nothing.
    """
    _check_options(tracking_uri, register)
    file = read_run_file(run_dir)
    if file is None:
        old = tracking_dir(run_dir) / "spool.jsonl"
        raise InputError(
            f"{old} was written by an earlier version, which alone can send it"
            if old.exists()
            else f"expected a run directory with tracking/{RUN_FILE}, but {run_dir} has none; "
            "name the directory of a run that was tracked"
        )
    lock, home = lock_of(run_dir), run_dir.absolute().parent
    if not lock.acquire(wait=False):
        raise InputError(
            f"{run_dir} is in use by another process, which sends the records itself; "
            "repeat this command when it has ended"
        )
    try:
        if not local_store(home).is_file():
            raise InputError(f"{run_dir} was recorded in {local_store(home)}, which does not exist")
        store = LocalStore(home)
        root = store.find_run(file.experiment, file.key)
        if register is not None:
            _register(store, run_dir, root, register)
        lost = end_lost_runs(store, run_dir, file, gone=gone, read_rows=read_rows)
        if lost.killed:
            click.echo(f"Its process is gone, so it is KILLED now: {', '.join(lost.killed)}.")
        if lost.elsewhere:
            click.echo(
                f"It has not ended, and its process is on {lost.elsewhere}, which cannot be asked "
                "from here. If the process is gone, say so with --gone."
            )
        server = server_uri(home, tracking_uri)
        if server is None:
            click.echo(
                f"{local_store(home)} has all of {run_dir}; name a server with --tracking-uri or "
                "MLFLOW_TRACKING_URI to send it a copy."
            )
            return
        click.echo(f"Sending {run_dir} to {hide_secrets(server)}")
        copy = Copy(home, server)
        family = [run.info.run_id for run in store.family(file.experiment, file.key)]
        try:
            copy.copy(family)
        except StoreAway as error:
            uri = hide_secrets(server)
            click.echo(f"metasched: {uri} takes no records ({hide_secrets(str(error))})", err=True)
            raise click.exceptions.Exit(1) from error
    except StoreAway as error:
        raise Failure(f"{local_store(home)} cannot be used ({error})") from error
    finally:
        lock.release()
    click.echo(
        f"Sent {copy.num_points} points and {copy.num_files} files or folders of "
        f"{len(family)} {'run' if len(family) == 1 else 'runs'}; nothing is left to send."
    )
    for what in copy.refused:
        click.echo(f"Refused by the server: {what}.")


def _check_options(tracking_uri: str | None, register: str | None) -> None:
    try:
        TrackingSection(uri=tracking_uri and hide_secrets(tracking_uri))
    except ValueError:
        raise InputError(
            f"--tracking-uri takes the address of an MLflow server or database, such as "
            f"http://127.0.0.1:5000 or sqlite:///mlflow.db, not '{shortened(str(tracking_uri))}'"
        ) from None
    try:
        TrackingSection(model=register)
    except ValueError:
        raise InputError(
            f"--register takes letters, digits, spaces and '._-', not '{shortened(str(register))}'"
        ) from None


def _register(store: LocalStore, run_dir: Path, root: str | None, name: str) -> None:
    """Makes the newest policy of a run a version of a registered model."""
    policy = run_dir / "policy"
    if root is None or not policy.is_dir():
        raise InputError(f"{run_dir} has no policy to register; train it to its first checkpoint")
    if escapes(policy, run_dir):
        raise InputError(f"links in {policy} lead out of {run_dir}, so it is not registered")
    may_be_model(read_policy_config(run_dir), name)
    store.artifact(root, policy)
    store.model(root, policy, name)


def end_lost_runs(
    store: LocalStore,
    run_dir: Path,
    file: RunFile,
    *,
    gone: bool = False,
    read_rows: ReadRows = lambda run_dir: (),
) -> LostRuns:
    """Ends the runs of a folder whose process was killed, as of their last point.

    A run of a process on another machine or in another container is left alone, unless somebody
    who knows says that it is gone. What the process had not written yet comes from its own table.
    The caller holds the lock of the folder.
    """
    running = [
        run for run in store.family(file.experiment, file.key) if run.info.status == "RUNNING"
    ]
    if not running:
        return LostRuns()
    ended = True if gone else is_gone(file.process)
    if ended is None:
        return LostRuns(elsewhere=file.process.get("host") or "an unknown host")
    if not ended:
        return LostRuns()
    if (root := store.find_run(file.experiment, file.key)) is not None:
        store.complete(root, read_rows(run_dir), store.last_time(root))
    for run in running:
        last = store.last_time(run.info.run_id) or run.info.start_time
        store.end(run.info.run_id, "KILLED", last)
    replace(file, ended=True).write(run_dir)
    return LostRuns(tuple(run.info.run_name for run in reversed(running)))


def settle_lost_runs(runs: Path) -> list[str]:
    """Ends the runs in a folder, in its local store, whose process is gone.

    Returns:
        Names of the runs that are KILLED now.
    """
    killed: list[str] = []
    store: LocalStore | None = None
    for path in sorted(runs.glob(f"*/tracking/{RUN_FILE}")):
        run_dir = path.parent.parent
        file, lock = read_run_file(run_dir), lock_of(run_dir)
        if file is None or file.ended or not is_gone(file.process):
            continue
        if not lock.acquire(wait=False):
            continue
        try:
            store = store or LocalStore(runs)
            killed += end_lost_runs(store, run_dir, file).killed
        except (StoreAway, OSError) as error:
            click.echo(f"metasched: {run_dir} could not be ended ({error})", err=True)
        finally:
            lock.release()
    return killed
