"""Calls of metasched's commands with typed options, each in a process of its own.

The options of a call are checked by the declarations of the command. No command line is read.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown
from cluster_env.worlds import WORLDS
from rllib_configs.config.extensions import load_extensions
from tune_jobs.cli import COMMANDS, find_command
from tune_jobs.commands.command_line import OptionsCommand
from tune_jobs.commands.flags import Argument, Field
from tune_jobs.commands.task_command import TaskCommand
from tune_jobs.commands.values import Scalar, value_of
from tune_jobs.experiments import joining
from tune_jobs.runs.directory import RunDirectory
from tune_jobs.terminal.output import show
from tune_jobs.terminal.running import run_call
from tune_jobs.terminal.signals import StopRequest
from tune_jobs.tracking.provenance import as_command

Options = Mapping[str, Scalar | Sequence[Scalar]]

ALONE = {"join": joining.command}
"""Calls that are no commands, but functions in Python."""

_WORLD = "task_options"  # the field that takes options of the world
_SHOWN = 80  # characters of a call, so that what is wrong with it has room
_POLL_S = 0.1
_LAST_LINES_S = 10.0
"""How long to wait for what an ended process has printed; another may hold its pipe open."""


@dataclass(frozen=True)
class Call:
    """One call of a command."""

    name: str
    options: Options  # and arguments, by name without dashes
    run: Path | None = None  # folder of the run that it trains, if it trains one
    num_iterations: int = 0  # of that run

    @cached_property
    def command(self) -> OptionsCommand:
        """The command that is called.

        Raises:
            InputError: if there is none.
        """
        if self.name in ALONE:
            return ALONE[self.name]
        if self.name not in COMMANDS:
            raise self.refusal(str(unknown("command", self.name, COMMANDS)))
        return find_command(self.name)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The command line that does the same, without ``metasched``."""
        fields, words, flagged = self.fields, [self.name], list[str]()
        for name, value in self.options.items():
            if name in fields and isinstance(fields[name].declaration, Argument):
                words += self.texts(name)
            elif value is True:
                flagged.append(f"--{name}")
            elif value is not False:
                flagged += [word for text in self.texts(name) for word in (f"--{name}", text)]
        return (*words, *flagged)

    def __str__(self) -> str:
        """That line as a shell takes it, or the call in Python of what has no such line."""
        if self.is_typed:
            return shlex.join(("metasched", *self.words))
        values = self.values()
        values |= {name.replace("-", "_"): text for name, text in values.pop(_WORLD, {}).items()}
        options = ", ".join(f"{name}={_plain(value)!r}" for name, value in values.items())
        return f"metasched.{self.name}({options})"

    @property
    def is_typed(self) -> bool:
        """Whether a command line can do the same."""
        untyped = {name for name, field in self.fields.items() if not field.is_typed}
        return self.name not in ALONE and not untyped & self.options.keys()

    @property
    def fields(self) -> dict[str, Field]:
        """All that the command takes in a plan, by name without dashes."""
        return {field.option: field for field in self.command.fields}

    def texts(self, *names: str) -> list[str]:
        """Values of some options, as texts."""
        values = [self.options[name] for name in names if name in self.options]
        return [
            one if isinstance(one, str) else json.dumps(one)
            for value in values
            for one in ([value] if isinstance(value, Scalar) else value)
        ]

    @property
    def is_done(self) -> bool:
        """Whether it trains a run that has its last checkpoint and its policy."""
        return self.run is not None and RunDirectory(self.run).has_done(self.num_iterations)

    @property
    def written(self) -> list[Path]:
        """Files and folders that it writes to, as its options name them."""
        names = ("out", "path") if self.name == "generate" else ("out",)
        return [Path(text) for text in self.texts(*names)]

    def names(self, other: "Call") -> bool:
        """Whether its options name the folder of the run that another call trains."""
        folder = re.compile(re.escape(str(other.run)) + r"(?![\w.-])")
        return other.run is not None and any(map(folder.search, self.texts(*self.options)))

    def refusal(self, problem: str) -> InputError:
        """What is raised where it cannot be made."""
        line = shlex.join([self.name, *(f"{key}={value}" for key, value in self.options.items())])
        return InputError(f"'{shortened(line, _SHOWN)}' cannot be called: {problem}")

    def values(self) -> dict[str, Any]:
        """What the command is called with: values by names of its fields, each of its type.

        Raises:
            InputError: if it has no such option, misses one, or a value has another type.
        """
        fields, of_world = self.fields, self._options_of_worlds()
        values: dict[str, Any] = {}
        for name, given in self.options.items():
            if name in fields:
                try:
                    values[fields[name].name] = value_of(fields[name], given)
                except ValueError as error:
                    raise self.refusal(f"{name}: {error}") from None
            elif name in of_world:
                values.setdefault(_WORLD, {})[name] = self.texts(name)[0]
            else:
                known = [*fields, *of_world]
                raise self.refusal(str(unknown(f"option of {self.name}", name, known)))
        for name, field in fields.items():
            if field.default is MISSING and name not in self.options:
                raise self.refusal(f"{name} is missing")
        return values

    def _options_of_worlds(self) -> set[str]:
        """Names of the options of worlds that the command takes."""
        if not isinstance(self.command, TaskCommand):
            return set()
        load_extensions()
        specs = map(WORLDS.get, WORLDS.names())
        return {name for spec in specs for name in self.command.options_of(spec)}

    def carry_out(self) -> int:
        """Calls the command in this process; returns its exit status."""

        def call() -> Any:
            line = ["metasched", *self.words] if self.is_typed else [str(self)]
            with as_command(line):
                return self.command.call(**self.values())

        return run_call(call, f"metasched {self.name}")

    def start(self, captured: bool) -> subprocess.Popen[str]:
        """Calls the command in a process of its own, with a group of its own.

        Else a terminal's Ctrl-C would reach it twice, and a second signal means to stop at once.
        What it prints goes into a pipe if that is to be captured.
        """
        return subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps([self.name, dict(self.options)])],
            stdout=subprocess.PIPE if captured else None,
            stderr=subprocess.STDOUT if captured else None,
            process_group=0,
            text=True,
        )


def carry_out_all(calls: Mapping[str, Call], at_once: int = 1) -> int:
    """Makes calls, each in its own process, and returns the status of the first that fails, else 0.

    One by one they have the terminal. Of several at a time, each line follows the name of what has
    printed it, and what names another's run waits for that one. A signal is passed on to all that
    run, so that they end cleanly; so is the failure of one, as SIGTERM, and none begins after it.

    Args:
        calls: by the name that each is shown with.
        at_once: how many may run at a time.
    """
    waiting, captured = list(calls.items()), at_once > 1
    running: dict[subprocess.Popen[str], Thread | None] = {}
    made: dict[subprocess.Popen[str], Call] = {}
    ending: set[subprocess.Popen[str]] = set()
    failed = 0

    def end_all() -> None:
        waiting.clear()
        for process in running.keys() - ending:
            ending.add(process)
            process.send_signal(stop.signal or signal.SIGTERM)

    with StopRequest(lambda _: end_all()) as stop:
        try:
            while running or waiting:
                while len(running) < at_once:
                    before = [made[process] for process in running]
                    ready = _first_ready(waiting, before)
                    if ready is None:
                        break
                    name, call = waiting.pop(ready)
                    begins = f"  begins; {len(waiting)} more wait" if captured else f"{call}"
                    show(f"{name}{begins}", bold=True)
                    process, reader = call.start(captured), None
                    if captured:
                        reader = Thread(target=_pass_on, args=(process, name), daemon=True)
                        reader.start()
                    running[process], made[process] = reader, call
                ended = [process for process in running if process.poll() is not None]
                for process in ended:
                    if reader := running.pop(process):
                        reader.join(_LAST_LINES_S)
                    failed = failed or process.returncode
                if stop or failed:
                    end_all()
                if not ended:
                    time.sleep(_POLL_S)
        except BaseException:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
            raise
    return stop.exit_status or failed


def _first_ready(waiting: Sequence[tuple[str, Call]], before: Sequence[Call]) -> int | None:
    """Place of the first call that names no run of those before it; None if there is none."""
    unfinished = [*before]
    for place, (_, call) in enumerate(waiting):
        if not any(map(call.names, unfinished)):
            return place
        unfinished.append(call)
    return None


def _plain(value: Any) -> Any:
    """A value of an option as Python code has it."""
    return str(value) if isinstance(value, Path) else value


def _pass_on(process: subprocess.Popen[str], name: str) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            show(f"{name}  {line.rstrip()}")


if __name__ == "__main__":
    name, options = json.loads(sys.argv[1])
    sys.exit(Call(name, options).carry_out())
