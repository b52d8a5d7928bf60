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
    help="MLflow server, or another database, by default MLFLOW_TRACKING_URI. What stands in "
    "RUN_DIR has no say in it, as your credentials go there.",
)
@click.option(
    "--from-start",
    is_flag=True,
    help="Look for each single point, and send all files again; runs and points are not doubled.",
)
@click.option(
    "--gone",
    is_flag=True,
    help="The run's process has ended, although nobody can see that from here: a run that is still "
    "called RUNNING is KILLED.",
)
@click.option(
    "--register",
    metavar="NAME",
    help="Make the run's policy a new version of the registered model NAME.",
)
def command(**options: Any) -> None:
    """Send an MLflow server what RUN_DIR has recorded.

    Training records in the store beside the run, mlflow.db, and copies from there to a server if
    there is one. This command copies what the server has not got, and says where to. It ends with
    status 1 if the server does not answer, and can be repeated at any time. Without a server it
    completes the local record alone.

    A run whose process was killed on this machine becomes KILLED. One that was started on another
    machine, or in another container, may still train there: it stays RUNNING, unless you know
    better and say --gone.

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
