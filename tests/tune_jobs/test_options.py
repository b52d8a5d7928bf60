"""What commands and Python functions take, as recorded in ``options.txt``: a change is seen there.

``python -m tests.tune_jobs.test_options`` writes that file anew.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

import metasched
from tune_jobs import cli

RECORDED = Path(__file__).with_name("options.txt")


def type_of(param: click.Parameter) -> str:
    """The type with its range or choices."""
    kind = param.type
    if isinstance(kind, click.Choice):
        return "|".join(kind.choices)
    if isinstance(kind, click.Path):
        places = [word for word in ("exists", "file_okay", "dir_okay") if getattr(kind, word)]
        return f"{type(kind).__name__}({', '.join(places)})"
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    some = "" if low is None else f"({'>' if kind.min_open else '>='}{low}"  # type: ignore[attr-defined]
    return f"{kind.name}{some and some + ('' if high is None else f', <={high}') + ')'}"


def line_of(param: click.Parameter) -> str:
    """All that a user notices of a parameter, but for its help."""
    metavar = param.metavar or ""
    words = [*param.opts, *(f"/{one}" for one in param.secondary_opts), type_of(param), metavar]
    if getattr(param, "is_flag", False):
        words.append("flag")
    if param.multiple or param.nargs == -1:
        words.append("several")
    default = param.to_info_dict()["default"]
    words += (
        ["required"] if param.required else [f"= {default}"] if default not in (None, ()) else []
    )
    return " ".join(word for word in words if word)


def taken() -> Iterator[str]:
    """A line for each parameter of each command, then one for each function."""
    for name in cli.COMMANDS:
        command = cli.metasched.get_command(click.Context(cli.metasched), name)
        assert command is not None
        params = [one for one in command.params if one.name != "debug"]
        yield from sorted(f"metasched {name} {line_of(one)}" for one in params)
    for name in metasched.__all__:
        function = getattr(metasched, name)
        if inspect.isfunction(function):
            for one in inspect.signature(function).parameters.values():
                yield f"metasched.{name} {one.kind.description}: {one}"


def test_the_help_of_all_commands_can_be_read() -> None:
    """Counted as on a terminal of 80 characters: a new option takes the place of words."""
    helps = (CliRunner().invoke(cli.metasched, [name, "--help"]) for name in cli.COMMANDS)
    assert sum(len(one.output.splitlines()) for one in helps) <= 900


def test_what_is_taken_is_recorded() -> None:
    assert list(taken()) == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    RECORDED.write_text("".join(f"{line}\n" for line in taken()))
