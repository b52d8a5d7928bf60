"""Counts what Python has allocated in a process, from inside and again and again, for a soak.

The counter must not touch an object: ``gc.get_objects`` in a thread of its own takes hold of tuples
that another thread is building, and Python then fails there with a SystemError.

A soak puts a copy of this file, named ``sitecustomize.py``, on the path of all that it starts, so
that Python imports it in each of them: in the driver, in Ray's workers and agents, in MLflow.
"""

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

FOLDER = "METASCHED_SOAK_COUNTS"
"""The environment variable that names the folder of the counts."""
EVERY = "METASCHED_SOAK_EVERY_S"
"""The one that says how many seconds lie between two of them."""


def count_for_ever(folder: Path, every_s: float) -> None:
    """Writes a number to a file named like the process, and again after every `every_s`.

    It is how many blocks of memory Python has handed out, one or two for each object.
    """
    path = folder / str(os.getpid())
    aside = path.with_suffix(".part")
    while True:
        time.sleep(every_s)
        with contextlib.suppress(OSError):  # the folder is gone when the soak is done
            aside.write_text(str(sys.getallocatedblocks()))
            aside.replace(path)


if FOLDER in os.environ and __name__ == "sitecustomize":
    threading.Thread(
        target=count_for_ever,
        args=(Path(os.environ[FOLDER]), float(os.environ[EVERY])),
        daemon=True,
        name="soak-count",
    ).start()
