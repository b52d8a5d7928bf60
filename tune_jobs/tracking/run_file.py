"""``tracking/run.json``: which run a run directory is, and which process records it."""

import json
import re
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cluster_env.core.json_text import read_json
from tune_jobs.terminal.files import write_whole
from tune_jobs.tracking.places import tracking_dir
from tune_jobs.tracking.process import Process, this_process

RUN_FILE = "run.json"
LOCK_FILE = "lock"
"""Held by the process that records a run directory, or sends it to a server."""


@dataclass(frozen=True)
class RunFile:
    """What a run directory says of its run, and of the process that recorded it last.

    Attributes:
        key: 32 hexadecimal digits; stores find the run by it, as each has an id of its own.
        ended: whether that process has recorded the end of the run.
        sent: whether it was to send a copy to a server. Where to is not written down.
    """

    experiment: str
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: Process = field(default_factory=this_process)
    ended: bool = False
    sent: bool = False

    def child_key(self, name: str) -> str:
        """Key of a run below it."""
        return uuid.uuid5(uuid.UUID(self.key), name).hex

    def write(self, run_dir: Path) -> None:
        """Writes it, atomically."""
        path = tracking_dir(run_dir) / RUN_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(self), indent=1) + "\n")


def read_run_file(run_dir: Path) -> RunFile | None:
    """What a run directory says of its run, None if it was not recorded."""
    try:
        content = read_json(tracking_dir(run_dir) / RUN_FILE)
        if not re.fullmatch(r"[0-9a-f]{32}", content["key"]):
            return None
        experiment, process = str(content["experiment"]), dict(content["process"])
        flags = {name: bool(content[name]) for name in ("ended", "sent")}
        return RunFile(experiment, content["key"], process, **flags)
    except (OSError, ValueError, KeyError, TypeError):
        return None
