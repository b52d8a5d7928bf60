"""``metasched figure``: a figure of a paper, or of ours."""

from typing import Annotated

from tune_jobs.commands import command_line
from tune_jobs.commands.flags import Flag
from tune_jobs.commands.results import Figure
from tune_jobs.commands.task_command import TaskCommand
from tune_jobs.terminal.options import print_list


def _figures() -> list[tuple[str, str]]:
    from tune_jobs.figures import FIGURES

    return [(name, FIGURES.get(name).about) for name in FIGURES.names()]


@command_line.command("figure", Figure, TaskCommand)
def command(
    options: Figure,
    *,
    track: Annotated[
        bool,
        Flag(
            "Record image and table in MLflow: in the store beside the first of --runs, else "
            "beside --out."
        ),
    ] = False,
) -> None:
    """Draw a figure. Without NAME and options the figures are listed.

    Runs that differ only in their seed share one line. Options that the figure does not use are
    refused.

    \b
    Examples:
      metasched figure
      metasched figure deeprm-fig4 --runs 'runs/deeprm-*' --out figures
      metasched figure learning-curves --runs runs/MY_RUN
      metasched figure optimality-gap --runs 'runs/deeprm-*' --jobsets 40
      metasched figure adaptation --rows adaptation --out runs/figures --track
    """
    if options == Figure():
        print_list(_figures())
        return
    from tune_jobs.figures.drawing import report_figure

    report_figure(options, track)


if __name__ == "__main__":
    from tune_jobs.terminal.running import run_command

    run_command(command)
