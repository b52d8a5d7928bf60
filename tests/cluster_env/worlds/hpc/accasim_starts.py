"""Starts of a log's jobs under AccaSim's EASY backfilling, printed one a line.

PYTHON accasim_starts.py LOG.swf PROCESSORS

It runs in an environment of its own with ``pip install accasim`` and imports nothing of ours. The
machine has nodes of one core each, and its allocator takes the first that are free.
"""

import collections
import collections.abc
import datetime
import json
import sys
import tempfile
from pathlib import Path

# AccaSim 1.1.3 imports it from where Python had it before version 3.10.
collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]

NO_TIME = datetime.datetime(1970, 1, 1)


def main(log: str, processors: int) -> None:
    """Plays the log and prints starts in seconds, by job."""
    from accasim.base.allocator_class import FirstFit  # type: ignore[import-not-found]
    from accasim.base.scheduler_class import EASYBackfilling  # type: ignore[import-not-found]
    from accasim.base.simulator_class import Simulator  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        machine = Path(folder) / "machine.json"
        groups = {"groups": {"one": {"core": 1}}, "resources": {"one": processors}}
        machine.write_text(
            json.dumps({**groups, "equivalence": {"processor": {"core": 1}}, "start_time": 0})
        )
        dispatcher = EASYBackfilling(FirstFit())
        options = {"statistics_output": False, "show_statistics": False, "LOG_LEVEL": "ERROR"}
        simulator = Simulator(log, str(machine), dispatcher, RESULTS_FOLDER_PATH=folder, **options)
        schedule = Path(next(iter(simulator.start_simulation().values())))
        starts = {}
        for line in schedule.read_text().splitlines():
            # job;user;submission__nodes__start;end;...
            job, _, rest = line.partition(";")
            start = rest.rpartition("__")[2].partition(";")[0]
            starts[int(job)] = int(
                (datetime.datetime.fromisoformat(start) - NO_TIME).total_seconds()
            )
    print("\n".join(str(starts[job]) for job in sorted(starts)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
