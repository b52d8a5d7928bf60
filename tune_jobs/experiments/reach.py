"""What the plan of an experiment can reach: a plan may be somebody else's.

It trains, evaluates and draws below its own folder, and nothing else: it neither acts at a site nor
sends anything anywhere, and goes on with no checkpoint but those that it wrote on this machine,
because reading a checkpoint can run code.
"""

import os
from hashlib import sha256
from pathlib import Path

from cluster_env.core.errors import InputError
from tune_jobs.experiments.calls import Call
from tune_jobs.runs.directory import RunDirectory

CALLS = frozenset(
    (
        *("adapt", "compare", "figure", "generate", "join", "replay"),
        *("study", "trace", "whatif"),
    )
)
"""Commands that evaluate or draw."""

_ELSEWHERE = ("address", "tracking-uri")


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder, wherever links lead."""
    return path.resolve().is_relative_to(folder.resolve())


def check_reach(call: Call, out: Path) -> None:
    """Makes sure that a call of a plan only evaluates or draws, and writes to its folder alone.

    Raises:
        InputError: if it would do anything else.
    """
    written = {one.option for one in call.command.fields if one.is_written}
    if call.name not in CALLS:
        raise call.refusal(f"a plan calls commands that evaluate: {', '.join(sorted(CALLS))}")
    for name in call.options.keys() & set(_ELSEWHERE):
        raise call.refusal(f"a plan does not say where something is sent, as --{name} does")
    for text in call.texts(*(name for name in call.options if name in written)):
        if not is_inside(Path(text), out):
            raise call.refusal(f"it would write to {text}, which is not in {out}")


def check_begun(run: Path, num_iterations: int) -> None:
    """Makes sure that a run with checkpoints was begun by `note_begun`, or is trained to its end.

    Raises:
        InputError: if somebody else began it.
    """
    directory = RunDirectory(run)
    if not directory.checkpoints.all() or directory.has_done(num_iterations):
        return
    if not _mark(run).exists():
        raise InputError(
            f"{run} holds checkpoints that `metasched results` did not write on this machine, and "
            f"reading a checkpoint can run code; if you trust it, resume it by yourself with "
            f"metasched train --resume {run}"
        )


def note_begun(run: Path) -> None:
    """Remembers that this run is begun here, where nobody's plan can."""
    mark = _mark(run)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"{run.resolve()}\n")
    except OSError:  # it can then be resumed by hand alone
        pass


def _mark(run: Path) -> Path:
    """A file of the user's that stands for a run."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = sha256(os.fsencode(run.resolve())).hexdigest()[:32]
    return Path(state, "metasched", "begun", name)
