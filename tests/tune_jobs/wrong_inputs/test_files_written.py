"""Every option that writes a single file spares one that is there, and needs its folder."""

import shlex
import shutil
from pathlib import Path

import click
import pytest

from tests.tune_jobs.wrong_inputs.conftest import Accepted, Refuse, replace_work
from tests.tune_jobs.wrong_inputs.test_every_option import COMMANDS, RIGHT
from tune_jobs import cli
from tune_jobs.terminal.options import OutPath

WRITING = sorted(
    {
        (name, param.opts[0])
        for name, command in COMMANDS.items()
        for param in command.params
        if isinstance(param.type, OutPath) and not param.type.dir_okay
    }
)
READS_OR_APPENDS = {
    "shadow --starts",
    *(f"{name} --{option}" for name in ("shadow", "steer") for option in ("out", "simulate")),
    *(f"{name} --repeat" for name in ("shadow", "steer")),
}
"""Options with a file that exists, or that grows."""

NEW = {"generate": "new.csv"}


def line_of(command: str, option: str, file: str) -> str:
    if option.startswith("--") and option not in RIGHT[command]:
        return f"{RIGHT[command]} {option} {file}"
    return RIGHT[command].replace(NEW[command], file)


def test_all_commands_that_write_a_file_are_here() -> None:
    assert {name for name, _ in WRITING} == {*NEW}
    for name, command in COMMANDS.items():
        for param in command.params:
            is_file = isinstance(param.type, click.Path) and not param.type.dir_okay
            if is_file and (name, param.opts[0]) not in WRITING:
                assert f"{name} {param.opts[0]}" in READS_OR_APPENDS


@pytest.mark.parametrize(("command", "option"), WRITING)
def test_a_file_that_is_there_stays_as_it_is(command: str, option: str, refuse: Refuse) -> None:
    assert "file is there already; --force replaces it" in refuse(line_of(command, option, "file"))


@pytest.mark.parametrize(("command", "option"), WRITING)
def test_a_folder_that_is_not_there_is_not_made(command: str, option: str, refuse: Refuse) -> None:
    error = refuse(f"{line_of(command, option, 'nosuch/new.csv')} --force")
    assert "cannot write nosuch/new.csv: there is no folder nosuch" in error


@pytest.mark.parametrize(("command", "option"), WRITING)
def test_force_replaces_it(
    command: str, option: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path / "copy", ignore=shutil.ignore_patterns("pipe"))
    monkeypatch.chdir(tmp_path / "copy")
    replace_work(monkeypatch)
    with pytest.raises(Accepted):
        cli.run(cli.metasched, shlex.split(f"{line_of(command, option, 'file')} --force"))
