"""Settings, options, commands and targets that a text of the program names are there.

Texts are the literals of the packages: what errors advise, what --help shows, what docstrings say.
"""

import ast
import re
from functools import cache
from itertools import chain
from pathlib import Path

import click
import pytest

from cluster_env.worlds import WORLDS
from rllib_configs.config.settings import list_settings
from tune_jobs import cli

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("cluster_env", "meta", "rllib_configs", "tune_jobs")

OF_OTHER_PROGRAMS = {
    *("--app-name", "--artifacts-destination", "--backend-store-uri", "--workers"),  # mlflow
    *("--allusers", "--array", "--clusters", "--dependency", "--duplicates", "--exclusive"),
    *("--format", "--head", "--hold", "--nodes", "--noheader", "--parsable", "--start", "--token"),
    *("--porcelain", "--untracked-files"),  # git
}
"""Those of mlflow, Slurm, Ray and git."""

PROSE = {"authors", "by", "compile", "differ", "from", "is", "no", "their", "writes"}
"""Words that follow the name of the program in a sentence."""

SECTIONS = ("checkpoint", "evaluation", "resources", "task", "tracking", "training")
SHORT = {"task.workload.trace"}
"""Settings that stand for several others."""

CHANGES = ("partition", "qos")
"""What ``whatif --change`` names beside settings."""


@cache
def texts() -> list[tuple[str, str]]:
    """File and text of each literal; what a formatted one fills in is a brace."""
    found = []
    for path in chain.from_iterable((REPOSITORY / one).rglob("*.py") for one in PACKAGES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            values = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
            if isinstance(node, ast.Constant | ast.JoinedStr) and all(
                isinstance(value, str) for value in values
            ):
                found.append((str(path.relative_to(REPOSITORY)), "".join(values)))
    return found


def named(pattern: str) -> list[tuple[str, str]]:
    """File and name of each match of a pattern with one group."""
    return [(file, name) for file, text in texts() for name in re.findall(pattern, text)]


def _words(param: click.Parameter) -> list[str]:
    return [*param.opts, *param.secondary_opts]


@cache
def known_options() -> set[str]:
    context = click.Context(cli.metasched)
    commands = [cli.metasched, *(cli.metasched.get_command(context, one) for one in cli.COMMANDS)]
    own = {word for one in commands for param in one.params for word in _words(param)}
    shown = [WORLDS.get(name).presentation for name in WORLDS.names()]
    axes = {f"--{one.axis.option}" for one in shown if one.axis is not None and one.axis.option}
    return own | axes | {f"--{name}" for one in shown for name in one.options} | {"--help"}


@cache
def known_settings() -> set[str]:
    return {setting.key for setting in list_settings()}


def is_setting(name: str) -> bool:
    """Whether a setting has this name, or is a table that may have any key."""
    keys = known_settings() | SHORT
    return name in keys or name.rpartition(".")[0] in keys


def test_options_are_there() -> None:
    options = named(r"(?<![\w-])(--[a-z][a-z-]*[a-z])(?![\w-])")
    assert len(options) > 500
    assert {one for one in options if one[1] not in known_options() | OF_OTHER_PROGRAMS} == set()


def test_settings_that_are_given_a_value_are_there() -> None:
    settings = named(r"(?<![\w.{}])([a-z_]+(?:\.[a-z_]+)+)=")
    assert len(settings) > 50
    unknown = {
        (file, name)
        for file, name in settings
        if name.partition(".")[0] not in CHANGES
        if not (is_setting(name) or is_setting(f"task.{name}"))
    }
    assert unknown == set()


@pytest.mark.parametrize("section", SECTIONS)
def test_settings_that_are_named_alone_are_there(section: str) -> None:
    settings = named(rf"(?<![\w./])({section}\.[a-z_]+(?:\.[a-z_]+)*)(?![\w/(=]|\.\w)")
    groups = {key.rpartition(".")[0] for key in known_settings()}
    unknown = {one for one in settings if not is_setting(one[1]) and one[1] not in groups}
    # What benchmarks measure has names that look alike.
    assert {one for one in unknown if "/benchmarks/" not in one[0]} == set()


def test_commands_are_there() -> None:
    commands = named(r"\bmetasched ([a-z]+)\b(?!\.)")
    assert len(commands) > 100
    assert {one for one in commands if one[1] not in {*cli.COMMANDS, *PROSE}} == set()


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named_targets = named(r"\b(?:run|``)\s?make ([a-z-]+)")
    assert named_targets
    assert {one for one in named_targets if one[1] not in targets} == set()
