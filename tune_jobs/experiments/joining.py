"""The call ``join`` of an experiment: tables of several comparisons as one."""

from tune_jobs.commands import command_line
from tune_jobs.commands.comparing import Join
from tune_jobs.tables.joining import join_tables


@command_line.command("join", Join)
def command(options: Join) -> None:
    """Join the CSV files of several calls into one."""
    join_tables(options).show()
