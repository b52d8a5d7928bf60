"""Whether the process that recorded a run still lives."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Process = dict[str, Any]

_PROC = Path("/proc")


def this_process() -> Process:
    """What tells this process from every other one, on any machine, for a record on disk.

    Returns:
        ``pid`` and ``started`` (the kernel's clock ticks), of the namespace ``space``, of one boot
        (``boot``) of a machine (``host`` and ``machine``). What the system does not say is None.
    """
    try:
        space = os.stat(_PROC / "self/ns/pid").st_ino
    except OSError:
        space = None
    return {
        "host": platform.node(),
        "machine": _text(Path("/etc/machine-id")),
        "boot": _text(_PROC / "sys/kernel/random/boot_id"),
        "space": space,
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def is_gone(process: Mapping[str, Any] | None) -> bool | None:
    """Whether a process has ended.

    Args:
        process: what `this_process` said there.

    Returns:
        None if that cannot be known here: it ran on another machine or in another container, or a
        record of an older version does not say which it was.
    """
    here = this_process()
    if not process or any(process.get(key) is None for key in here.keys() - {"machine"}):
        return None
    if any(process.get(key) != here[key] for key in ("host", "machine")):
        return None
    if process["boot"] != here["boot"]:
        return True
    if process["space"] != here["space"]:
        return None
    pid = process["pid"]
    return _started(pid) != process["started"] if isinstance(pid, int) else None


def _started(pid: int) -> int | None:
    """When a process began, in clock ticks since the boot; None if there is none."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # behind the name, which may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
