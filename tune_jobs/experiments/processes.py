"""Commands of metasched in processes of their own: one at a time, or several at once."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Thread

import click

from tune_jobs.terminal.signals import StopRequest

_POLL_S = 0.1
_LAST_LINES_S = 10.0
"""How long to wait for what an ended process has printed; another may hold its pipe open."""


def run_one(words: Sequence[str]) -> int:
    """Runs a command in this terminal and returns its exit status.

    A signal is passed on, so that it ends cleanly.

    Args:
        words: of the command line, without ``metasched``.
    """
    process = _start(words)
    with StopRequest(lambda name: process.send_signal(signal.Signals[name])) as stop:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return stop.exit_status or status


def run_several(commands: Mapping[str, Sequence[str]], at_once: int) -> int:
    """Runs commands side by side and returns the exit status of the first that fails; 0 if none.

    Each line that one prints follows its name. A signal is passed on to all that run; so is the
    failure of one, as SIGTERM, and none begins after it.

    Args:
        commands: words of each command line, without ``metasched``, by the name it is shown with.
        at_once: how many may run at a time.
    """
    running: dict[subprocess.Popen[str], Thread] = {}
    told: set[subprocess.Popen[str]] = set()
    waiting = list(commands.items())
    failed = 0

    def end_all() -> None:
        waiting.clear()
        for process in running.keys() - told:
            told.add(process)
            process.send_signal(stop.signal or signal.SIGTERM)

    with StopRequest(lambda _: end_all()) as stop:
        try:
            while running or waiting:
                while waiting and len(running) < at_once:
                    name, words = waiting.pop(0)
                    click.secho(f"{name}  begins; {len(waiting)} more wait", bold=True)
                    process = _start(words, captured=True)
                    running[process] = Thread(target=_pass_on, args=(process, name), daemon=True)
                    running[process].start()
                ended = [process for process in running if process.poll() is not None]
                for process in ended:
                    running.pop(process).join(_LAST_LINES_S)
                    failed = failed or process.returncode
                if stop or failed:
                    end_all()
                if not ended:
                    time.sleep(_POLL_S)
        except BaseException:
            for process in running:
                process.terminate()
            for process, thread in running.items():
                process.wait()
                thread.join(_LAST_LINES_S)
            raise
    return stop.exit_status or failed


def _start(words: Sequence[str], captured: bool = False) -> subprocess.Popen[str]:
    """The process gets a group of its own.

    Else a terminal's Ctrl-C would reach it twice, and a second signal means to stop at once.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tune_jobs.cli", *words],
        stdout=subprocess.PIPE if captured else None,
        stderr=subprocess.STDOUT if captured else None,
        process_group=0,
        text=True,
    )


def _pass_on(process: subprocess.Popen[str], name: str) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            click.echo(f"{name}  {line.rstrip()}")
