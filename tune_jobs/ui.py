"""``metasched ui``: shows the runs of a folder in MLflow's web interface."""

from pathlib import Path
from typing import Any

import click

from tune_jobs.terminal.options import CONTEXT


@click.command(name="ui", context_settings=CONTEXT)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    help="Folder that holds the run directories.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=5000, help="Port to listen on.")
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on. Other machines that reach it can see and delete runs.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, but open no browser.")
def command(**options: Any) -> None:
    """Serve MLflow's web interface for the local runs, until Ctrl-C.

    \b
    Examples:
      metasched ui
      metasched ui --runs /data/runs --port 5050 --no-browser
    """
    from tune_jobs.tracking.server import show_runs

    show_runs(**options)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
