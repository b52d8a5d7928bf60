"""``metasched sync``: sends an MLflow server what a run has recorded and it does not have yet."""

from pathlib import Path
from typing import Annotated

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Argument, Flag


@command_line.command("sync")
def command(
    run_dir: Annotated[Path, Argument("Folder of a run.")],
    *,
    tracking_uri: Annotated[
        str | None,
        Flag(
            "MLflow server, or another database; by default MLFLOW_TRACKING_URI. Addresses in "
            "RUN_DIR are ignored, because your credentials go to the server.",
            metavar="URI",
        ),
    ] = None,
    gone: Annotated[
        bool,
        Flag(
            "Confirm that the run's process has ended on another machine: a run that is RUNNING "
            "becomes KILLED."
        ),
    ] = False,
    register: Annotated[
        str | None,
        Flag("Make the run's policy a new version of the registered model NAME.", metavar="NAME"),
    ] = None,
) -> None:
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

    send_records(run_dir, tracking_uri, gone, register, read_rows=_rows)


def _rows(run_dir: Path) -> list[tuple[int, dict[str, float]]]:
    from tune_jobs.runs.history import METRICS, History

    return History(run_dir / METRICS).by_iteration()


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
