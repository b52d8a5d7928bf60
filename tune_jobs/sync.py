"""``metasched sync``: sends to MLflow what a run has recorded and MLflow does not have yet."""

import os
from pathlib import Path

import click

from cluster_env.core.errors import InputError
from cluster_env.core.secrets import hide_secrets
from tune_jobs.tracking import Busy, Delivery, Spool, StoreAway, tracking_dir


@click.command(name="sync")
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow server or database, by default the one that the run was started with.",
)
@click.option(
    "--from-start",
    is_flag=True,
    help="Send everything again, also what was refused; runs and points are not doubled.",
)
def command(run_dir: Path, tracking_uri: str | None, from_start: bool) -> None:
    """Send what RUN_DIR has recorded to MLflow.

    Training writes its records to RUN_DIR/tracking before it sends them, so nothing is lost when
    the server is away. This command sends the rest, or everything to another server. It ends with
    status 1 if the server does not answer, and can be repeated at any time.

    \b
    Examples:
      metasched sync runs/deeprm-1
      metasched sync runs/deeprm-1 --tracking-uri http://mlflow.example.org:5000
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
    click.echo(f"{sent} records sent, {delivery.waiting()} wait" + _refused_note(run_dir, refused))


def _refused_note(run_dir: Path, refused: int) -> str:
    if not refused:
        return "."
    place = os.fspath(tracking_dir(run_dir) / "refused.jsonl")
    return f", {refused} of them refused by the server; see {place}."


if __name__ == "__main__":
    from tune_jobs.cli import run_command

    run_command(command)
