"""What ``metasched sync`` does: delivers what waits in a run directory."""

from pathlib import Path

import click

from cluster_env.core.errors import InputError
from cluster_env.core.secrets import hide_secrets
from tune_jobs.tracking.delivery import Busy, Delivery
from tune_jobs.tracking.spool import Spool, tracking_dir
from tune_jobs.tracking.store import StoreAway


def send_records(run_dir: Path, tracking_uri: str | None, from_start: bool) -> None:
    """Sends records, and says how many.

    Args:
        run_dir: folder of a run that was tracked.
        tracking_uri: MLflow server or database, by default the run's own.
        from_start: whether to send everything again.

    Raises:
        InputError: if there are no records, or another process sends them.
        Exit: with status 1, if the store takes none.
    """
    spool = Spool(tracking_dir(run_dir))
    opened = spool.of_kind("open")
    if not opened:
        raise InputError(
            f"expected a run directory with tracking/spool.jsonl, but {run_dir} has none; "
            "name the directory of a run that was tracked"
        )
    uri = tracking_uri or opened[-1]["uri"]
    delivery = Delivery(run_dir, uri, from_start=from_start)
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
