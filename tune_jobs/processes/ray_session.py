"""Ray, started here or joined, and left as it was found."""

import contextlib
import os
import re
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError, shortened
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.terminal.running import debugging, num_local_cpus, prepare_environment
from tune_jobs.terminal.signals import deadline, heed, sigterm_held_back

START_LIMIT = "METASCHED_RAY_START_S"
"""Variable of the environment: seconds that Ray may take to start, 120 by default."""
_CONNECT_TIMEOUT_S = 5.0
_WRITERS_LIMIT_S = 10.0
_ADDRESS_SPACE = 4_000_000_000  # bytes; a small training fails with 3.7 GB and ends with 4.3 GB
_OBJECT_STORE_BYTES = 1 << 30  # an iteration at the paper's size moves 15 MB
SYSTEM_CONFIG = {
    # What a dashboard would show of tasks: without one it only grows, 4 KiB for each call.
    "task_events_report_interval_ms": 0,
    # Gradients come back with the answer: by way of the object store they cost half as much again.
    "max_direct_call_object_size": 1 << 20,
}
_LONGEST_SOCKET = 107  # bytes of the path of a Unix socket, Linux's limit
_SOCKET = "ray/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store"
_WRONG_TOKEN = "InvalidAuthToken"
_CHATTER = re.compile(rb"\[\d{4}-\d\d-\d\d [\d:,]+ [IWE] \d+ \d+\] \w+\.cc:\d+: ")


def resolve_address(address: str | None) -> str | None:
    """The cluster that is meant: the given one, else the one of a submitted job, else none."""
    return address or os.environ.get("RAY_ADDRESS") or None


def require_utf8() -> None:
    """Makes sure that Ray can pass on the command line and the folder, which it does as UTF-8.

    Raises:
        InputError: if Python has read them in a narrower encoding, as in the locale C.
    """
    for text in (*sys.argv, os.getcwd()):
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = text.encode(errors="replace").decode()
            raise InputError(
                f"this terminal's locale cannot encode all letters of '{shown}', so Ray "
                "cannot use it; set PYTHONUTF8=1, or LC_ALL=C.UTF-8"
            ) from None


def require_address_space() -> None:
    """Makes sure that libraries can be mapped, as a batch system's limit may prevent.

    Raises:
        InputError: if Ray or PyTorch would end this process without a sentence.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < _ADDRESS_SPACE:
        raise InputError(
            f"this shell lets a process map {limit / 1e9:.1f} GB, but Ray and PyTorch map more "
            f"than {_ADDRESS_SPACE / 1e9:.0f} GB; call ulimit -v unlimited, or ask the batch "
            "system for more memory"
        )


def check_placement(config: ExperimentConfig, address: str | None) -> None:
    """Finds out, before Ray starts, whether the run can be placed.

    Raises:
        InputError: if it wants more runners than this machine has CPUs, the cluster cannot be
            reached, or Ray cannot be given the command line, a folder or room for its libraries.
    """
    require_utf8()
    require_address_space()
    address = resolve_address(address)
    if address is None:
        _session_root()
        cpus, runners = num_local_cpus(), config.resources.num_runners
        if runners > cpus:
            raise InputError(
                f"{runners} runners were asked for, but this machine has {cpus} CPUs; use at most "
                f"--runners {cpus}, or a cluster with --address"
            )
        return
    if address in ("auto", "local"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in address or not port.isdigit():
        raise InputError(f"--address takes HOST:PORT of a Ray head node, or auto, not '{address}'")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address} ({error}); start one with: ray start --head"
        ) from None


@contextmanager
def ray_session(config: ExperimentConfig, address: str | None = None) -> Iterator[None]:
    """Connects to Ray for the time of a ``with`` block.

    A local Ray listens for processes that know a token made up for it, and ends with the block; its
    folder, half a megabyte of logs, stays only where something failed. A Ray that this process is
    connected to already is used as it is and left running.

    Args:
        config: what will run; a local Ray gets as many logical CPUs as it has processes.
        address: HOST:PORT of a cluster, ``auto``, or None; see `resolve_address`.

    Raises:
        InputError: if there is no cluster at the address, or Ray cannot be given the command line.
        Failure: if Ray has not started in time.
    """
    prepare_environment()
    require_utf8()
    require_address_space()
    address = resolve_address(address)
    if address in (None, "local"):
        _make_up_token()
    import ray

    heed()
    if ray.is_initialized():
        yield
        return
    folder = None
    log = {"log_to_driver": debugging(), "logging_level": "INFO" if debugging() else "ERROR"}
    where = "on this machine" if address in (None, "local") else f"at {address}"
    load = f"the load average is {os.getloadavg()[0]:.0f} on {num_local_cpus()} CPUs"
    advice = f"{START_LIMIT} sets the seconds to wait for it"
    limit = deadline(_start_limit_s(), f"Ray did not start {where} ({load}; {advice})")
    with sigterm_held_back(), limit:
        if address in (None, "local"):
            folder = _start(config, log)
        else:
            _join(address, log)
    try:
        yield
    except Exception:
        folder = None  # its logs may say why
        raise
    finally:
        ray.shutdown()
        if folder is not None and not debugging():
            _remove_session(folder)


def _start_limit_s() -> float:
    text = os.environ.get(START_LIMIT, "120")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"{START_LIMIT} is a number of seconds, not '{shortened(text)}'")
    return seconds


@contextmanager
def without_ray_chatter() -> Iterator[list[bytes]]:
    """Drops what Ray's C++ core writes to stderr in a ``with`` block; all else comes after it.

    Each time that actors which may restart are created, it warns of what does not apply here.

    Yields:
        A list that holds the lines that were dropped, when the block has ended.
    """
    dropped: list[bytes] = []
    if debugging():
        yield dropped
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield dropped
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            caught.seek(0)
            for line in caught:
                if _CHATTER.match(line):
                    dropped.append(line)
                else:
                    os.write(2, line)


def _make_up_token() -> None:
    """Keeps other users of this machine out of a local Ray.

    Left alone, Ray would write a token to the home directory and use it ever after.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    if "ray" not in sys.modules:  # later, Ray reads the mode no more, but sets it itself
        os.environ["RAY_AUTH_MODE"] = "token"


def _session_root() -> str | None:
    """The folder for sessions of a local Ray; None for Ray's own choice.

    Batch systems name a TMPDIR whose path is too long for the sockets below it; sessions are small,
    so they go to ``/tmp`` then.

    Raises:
        InputError: if the folder that the user names for Ray is too long.
    """
    usual = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    too_many = len(os.fsencode(Path(usual) / _SOCKET)) - _LONGEST_SOCKET
    if too_many <= 0:
        return None
    if "RAY_TMPDIR" not in os.environ and os.access("/tmp", os.W_OK | os.X_OK):
        return "/tmp/ray"
    raise InputError(
        f"{shortened(usual)} is too long for Ray, whose sockets lie below it, by {too_many} "
        f"characters; set RAY_TMPDIR to a shorter folder"
    )


def _start(config: ExperimentConfig, log: dict[str, Any]) -> Path:
    """Starts a local Ray, and returns the folder of its session."""
    root = _session_root()
    context = start_patiently(
        address="local",
        num_cpus=max(num_local_cpus(), config.resources.num_runners),
        num_gpus=0,
        object_store_memory=_OBJECT_STORE_BYTES,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        _system_config=SYSTEM_CONFIG,
        **({"_temp_dir": root} if root else {}),
        **log,
    )
    return Path(context.address_info["session_dir"])


def _join(address: str | None, log: dict[str, Any]) -> None:
    """Joins a cluster.

    Raises:
        InputError: if it cannot be joined.
    """
    import ray

    chatter: list[bytes] = []
    try:
        with without_ray_chatter() as chatter:
            ray.init(address=address, **log)
    except (ConnectionError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        # Ray's error is that of a cluster that is not there; only its core logs the reason.
        if _WRONG_TOKEN in said or any(_WRONG_TOKEN.encode() in line for line in chatter):
            said = (
                "it asks for a token, and the one here is missing or another; set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, as its head has"
            )
        raise InputError(f"cannot join the Ray cluster at {address}: {said}") from None


def _remove_session(folder: Path) -> None:
    """Removes a folder of logs once nobody is left who would write into it, and so bring it back.

    Ray ends its processes without waiting for them, and they log their end.
    """
    end = time.monotonic() + _WRITERS_LIMIT_S
    while _is_named(folder) and time.monotonic() < end:
        time.sleep(0.05)
    latest = folder.with_name("session_latest")
    if latest.is_symlink() and latest.readlink() == folder:
        latest.unlink(missing_ok=True)  # Ray never replaces a link that leads nowhere
    shutil.rmtree(folder, ignore_errors=True)


def _is_named(folder: Path) -> bool:
    """Whether a process of this machine has the folder in its command line, as Ray's have."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if os.fsencode(folder) in path.read_bytes():
                return True
    return False


def start_patiently(**options: Any) -> Any:
    """Starts Ray, again and again where it is too slow for itself; see `deadline`.

    Args:
        options: of ``ray.init``.

    Returns:
        What that returned.
    """
    import ray

    while True:
        try:
            return ray.init(**options)
        except Exception as error:
            # Ray itself waits for 30 s only, which is short on a busy machine.
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
