"""What ``metasched sync`` does: delivers what waits in a run directory."""

from contextlib import closing
from pathlib import Path

import click

from cluster_env.core.errors import InputError
from rllib_configs.policy_files import read_policy_config
from rllib_configs.schema import TrackingSection
from rllib_configs.secrets import hide_secrets
from tune_jobs.tracking.delivery import Busy, Delivery
from tune_jobs.tracking.ending import LostRuns, end_lost_runs
from tune_jobs.tracking.model import may_be_model
from tune_jobs.tracking.places import recorded_store
from tune_jobs.tracking.recorded import newest_root
from tune_jobs.tracking.spool import SPOOL_FILE, Spool, tracking_dir
from tune_jobs.tracking.store import StoreAway


def send_records(
    run_dir: Path,
    tracking_uri: str | None,
    from_start: bool,
    gone: bool,
    register: str | None,
) -> None:
    """Sends records, and says how many; runs whose process is gone are ended first.

    Args:
        run_dir: folder of a run that was tracked.
        tracking_uri: MLflow server or database, by default the run's own.
        from_start: whether to send everything again.
        gone: whether the user says that the process of the run has ended.
        register: name in MLflow's registry of which the run's policy becomes a new version.

    Raises:
        InputError: if there are no records, or another process sends them.
        Exit: with status 1, if the store takes none.
    """
    if not Spool(tracking_dir(run_dir)).of_kind("open"):
        raise InputError(
            f"expected a run directory with tracking/spool.jsonl, but {run_dir} has none; "
            "name the directory of a run that was tracked"
        )
    if register is not None:
        _register(run_dir, register)
    lost = end_lost_runs(run_dir, gone=gone)
    delivery = Delivery(run_dir, tracking_uri or recorded_store(run_dir), from_start=from_start)
    try:
        sent = delivery.run_to_end()
    except Busy:
        raise InputError(
            f"{run_dir} is in use by another process, which sends the records itself; "
            "repeat this command when it has ended"
        ) from None
    except StoreAway as error:
        store = hide_secrets(delivery.uri)
        waiting = delivery.waiting()
        click.echo(f"metasched: {store} takes no records ({error}); {waiting} wait", err=True)
        raise click.exceptions.Exit(1) from error
    finally:
        delivery.close()
    refused = delivery.refused.total()
    place = tracking_dir(run_dir) / "refused.jsonl"
    note = f", {refused} of them refused by the server; see {place}." if refused else "."
    click.echo(f"{sent} records sent, {delivery.waiting()} wait" + note)
    _say_what_was_lost(lost)


def _register(run_dir: Path, name: str) -> None:
    """Records that the newest policy of a run is to be a version of a registered model."""
    try:
        TrackingSection(model=name)
    except ValueError:
        raise InputError(
            f"--register takes letters, digits, spaces and '._-', not {name!r}"
        ) from None
    spool = Spool(tracking_dir(run_dir))
    root = newest_root(spool)
    if root is None or not (run_dir / "policy").is_dir():
        raise InputError(f"{run_dir} has no policy to register; train it to its first checkpoint")
    may_be_model(read_policy_config(run_dir), name)
    with closing(spool):
        spool.append({"kind": "model", "run": root["run"], "path": "policy", "register": name})


def _say_what_was_lost(lost: LostRuns) -> None:
    if lost.killed:
        click.echo(f"Its process is gone, so it is KILLED now: {', '.join(lost.killed)}.")
    if lost.elsewhere:
        click.echo(
            f"It has not ended, and its process is on {lost.elsewhere}, which cannot be asked from "
            "here. If the process is gone, say so with --gone."
        )


def settle_lost_runs(runs: Path, store: str) -> list[str]:
    """Ends the runs below a folder whose process is gone, and sends what they had not sent.

    Args:
        runs: folder of run directories.
        store: only runs that are recorded there are looked at.

    Returns:
        Names of the runs that are KILLED now.
    """
    killed: list[str] = []
    spools = (runs.glob(f"{depth}tracking/{SPOOL_FILE}") for depth in ("*/", "*/*/"))
    for run_dir in sorted(spool.parent.parent for found in spools for spool in found):
        delivery = Delivery(run_dir, recorded_store(run_dir))
        if delivery.uri != store or not (ended := end_lost_runs(run_dir).killed):
            continue
        try:
            delivery.run_to_end()
        except (Busy, StoreAway) as error:
            click.echo(f"metasched: the records of {run_dir} were not sent ({error})", err=True)
        finally:
            delivery.close()
        killed += ended
    return killed
