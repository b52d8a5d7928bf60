"""``metasched ui``: shows the runs of a folder in MLflow's web interface."""

from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag


@command_line.command("ui")
def command(
    *,
    runs: Annotated[Path, Flag("Folder that holds the run directories.")] = Path("runs"),
    port: Annotated[Annotated[int, Interval(ge=1, le=65535)], Flag("Port to listen on.")] = 5000,
    host: Annotated[
        str, Flag("Address to listen on. Other machines that reach it can see and delete runs.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, Flag("Print the address, but open no browser.")] = False,
) -> None:
    """Serve MLflow's web interface for the local runs, until Ctrl-C.

    \b
    Examples:
      metasched ui
      metasched ui --runs /data/runs --port 5050 --no-browser
    """
    from tune_jobs.tracking.server import show_runs

    show_runs(runs, port, host, no_browser)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
