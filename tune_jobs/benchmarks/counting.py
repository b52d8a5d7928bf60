"""Counts the Python objects of a process from inside, again and again, for a soak.

A soak puts a copy of this file, named ``sitecustomize.py``, on the path of all that it starts, so
that Python imports it in each of them: in the driver, in Ray's workers and agents, in MLflow.
"""

import contextlib
import gc
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
    """Writes two numbers to a file named like the process, and again after every `every_s`.

    They are the objects that the collector of garbage knows, and the blocks of memory that Python
    has handed out for objects of any kind.
    """
    path = folder / str(os.getpid())
    aside = path.with_suffix(".part")
    while True:
        time.sleep(every_s)
        with contextlib.suppress(OSError):  # the folder is gone when the soak is done
            aside.write_text(f"{len(gc.get_objects())} {sys.getallocatedblocks()}")
            aside.replace(path)


if FOLDER in os.environ and __name__ == "sitecustomize":
    threading.Thread(
        target=count_for_ever,
        args=(Path(os.environ[FOLDER]), float(os.environ[EVERY])),
        daemon=True,
        name="soak-count",
    ).start()
