"""A call in a process of its own, so that code of strangers ends with it, whatever it does."""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cloudpickle

from cluster_env.core.errors import Failure, printable, shortened
from cluster_env.core.json_text import read_json
from rllib_configs.config.extensions import load_extensions

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SHOWN = 200  # characters of what a stranger's code raises


@dataclass(frozen=True)
class Limits:
    """What a call may use.

    Attributes:
        seconds: of the clock on the wall, from the start of its process on.
        memory: bytes of addresses; libraries that are imported count too.
    """

    seconds: float
    memory: int = 8 << 30


def call_apart(function: Callable[[Any], Any], argument: Any, limits: Limits) -> Any:
    """Calls a function of a module; gives what it returns, which must be plain data.

    Raises:
        Failure: if it raises an error, or is stopped at a limit.
    """
    with TemporaryDirectory(prefix="metasched-") as name:
        folder = Path(name)
        call = cloudpickle.dumps((function, argument, limits.memory))
        (folder / "call").write_bytes(call)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            | dict.fromkeys(_THREADS, "1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"it was stopped after {limits.seconds:.0f} s") from None
        finally:
            # It may have started others, which are of its session.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _answer(folder / "answer", process.returncode)


def _answer(path: Path, status: int) -> Any:
    try:
        answer = read_json(path)
    except (OSError, ValueError):
        raise Failure(f"its process ended with status {status} and no answer") from None
    if "error" in answer:
        raise Failure(answer["error"])
    return answer["found"]


def _main(folder: Path) -> None:
    """In the other process."""
    answer: dict[str, Any]
    function, argument, memory = pickle.loads((folder / "call").read_bytes())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        load_extensions()
        answer = {"found": function(argument)}
    except MemoryError:
        answer = {"error": f"it was stopped at {memory / 2**30:.3g} GiB of memory"}
    except BaseException as error:  # whatever the code of others raises
        text = (str(error).strip() or "no reason").splitlines()[0]
        answer = {"error": f"{type(error).__name__}: {printable(shortened(text, _SHOWN))}"}
    (folder / "answer").write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
