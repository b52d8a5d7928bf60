"""``metasched sync``: sends an MLflow server what a run has recorded and it does not have yet."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT


@click.command(name="sync", context_settings=CONTEXT)
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="MLflow server, or another database; by default MLFLOW_TRACKING_URI. Addresses in RUN_DIR "
    "are ignored, because your credentials go to the server.",
)
@click.option(
    "--from-start",
    is_flag=True,
    help="Check each single point, and send all files again; nothing is doubled.",
)
@click.option(
    "--gone",
    is_flag=True,
    help="Confirm that the run's process has ended on another machine: a run that is RUNNING "
    "becomes KILLED.",
)
@click.option(
    "--register",
    metavar="NAME",
    help="Make the run's policy a new version of the registered model NAME.",
)
def command(**options: Any) -> None:
    """Send an MLflow server the records of RUN_DIR that it lacks.

    Training records in the store beside the run, mlflow.db, and copies to a server if one is named.
    This command copies the rest and prints the address. It ends with status 1 if the server does
    not answer, and can be repeated at any time. Without a server it only completes the local
    record.

    A run whose process was killed on this machine becomes KILLED. A run of another machine or
    container may still train, so it stays RUNNING without --gone.

    \b
    Examples:
      metasched sync runs/deeprm-1
      metasched sync runs/deeprm-1 --tracking-uri http://mlflow.example.org:5000
      metasched sync runs/deeprm-1 --register site-policy
    """
    from tune_jobs.tracking.sending import send_records

    send_records(**options, read_rows=_rows)


def _rows(run_dir: Path) -> list[tuple[int, dict[str, float]]]:
    from tune_jobs.runs.history import METRICS, History

    return History(run_dir / METRICS).by_iteration()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
