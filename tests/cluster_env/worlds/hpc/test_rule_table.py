"""Every ordinary rule on real and generated logs, against what another simulator found, to a digit.

Means of the bounded slowdown over windows that begin on an empty machine. Lublin-1, Lublin-2 and
the first with made-up estimates: ten windows of 1,024 jobs on 256 processors. NASA with all times
of submission halved: ten windows on 128. Theta as it is and with times of submission x 0.6: five
windows, which overlap, on 4,360.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import arrays, jobset_of, played
from tests.golden import stored

JOBS = 1024
OF_LUBLIN = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
OF_NASA = (0, 441, 882, 1323, 1764, 2205, 2646, 3087, 3528, 3970)
OF_THETA = (0, 492, 985, 1477, 1970)
WINDOWS = {
    "lublin1": ("rls/trace_lublin_256.npz", OF_LUBLIN),
    "lublin2": ("rls/trace_lublin_256_new2.npz", OF_LUBLIN),
    "lublin1noisy": ("rls/trace_lublin_256_noisy.npz", OF_LUBLIN),
    "nasa_x0.5": ("traces/oracle_nasa_x0.5.npz", OF_NASA),
    "theta": ("traces/oracle_theta_train.npz", OF_THETA),
    "theta_x0.6": ("traces/oracle_theta_train_x0.6.npz", OF_THETA),
}

TABLE = """
fcfs/strict     7274    7842    7274  397.78   52.61  258.17
fcfs/skip     303.49  290.69  303.49   96.14   11.82   52.46
fcfs/easy     271.40  222.18  330.05  110.17    8.08   61.61
sjf/strict     47.16  205.88   48.26   17.12   10.76   19.30
sjf/skip       35.97  129.53   37.25   21.04   10.66   33.26
sjf/easy       42.08   82.63   35.96   15.12    3.62   12.61
saf/strict     26.95   46.14   16.56   16.91   28.44   39.41
saf/skip       38.99  127.96   39.91   21.10   10.54   36.07
saf/easy       34.38   72.73   31.45   15.56   18.93   22.76
wspt/strict    18.23   76.08   22.28   18.28    7.07   22.56
wspt/skip      38.15  130.33   39.32   21.04   10.57   36.23
wspt/easy      32.06   74.97   32.60   16.95    3.73   22.22
wfp3/strict   118.74  469.30  155.96   55.94   21.47   85.39
wfp3/skip      39.51  143.81   42.98   23.54   10.87   35.52
wfp3/easy      80.33   71.34   72.65   37.94    5.12   32.95
unicep/strict  34.32  165.65   55.39   24.78   16.19   57.92
unicep/skip    40.48  141.49   42.51   20.91   11.14   34.63
unicep/easy    58.71   88.73   55.65   27.25    4.87   24.41
f1/strict      34.53  117.93   35.32   19.65   11.98   37.21
f1/skip        35.85  121.58   41.32   21.15   11.44   41.62
f1/easy        35.26  109.57   35.30   20.67   11.51   37.23
f2/strict      32.25   63.07   21.80   17.96   17.77   25.10
f2/skip        37.87  131.36   38.97   21.46   10.79   35.39
f2/easy        35.66   82.41   30.76   17.34   14.09   22.92
f3/strict      35.16  652.07   24.62   25.68   29.76   43.36
f3/skip        38.35  135.87   39.00   20.87   10.63   35.25
f3/easy        35.33   65.65   30.09   18.17   19.53   23.65
f4/strict      20.68  392.79   23.82   22.79    6.65   20.43
f4/skip        38.75  132.42   38.47   21.45   10.29   35.93
f4/easy        29.66   66.85   31.98   18.90    3.91   20.25
"""
EXPECTED = {
    line.split()[0]: dict(zip(WINDOWS, line.split()[1:], strict=True))
    for line in TABLE.strip().splitlines()
}


@cache
def windows_of(golden: Path, trace: str) -> tuple[HPC, list[JobSet]]:
    file, offsets = WINDOWS[trace]
    data = arrays(stored(golden / file))
    if file.startswith("rls"):
        columns = [data[f"trace_{name}"] for name in ("submit", "run", "req_time", "procs")]
        processors = 256
    else:
        columns = [data[name] for name in ("submit", "run", "est", "procs")]
        processors = int(data["procs_total"])
    windows = [jobset_of(*(c[first : first + JOBS] for c in columns)) for first in offsets]
    return HPC(processors=processors), windows


@pytest.mark.parametrize("trace", WINDOWS)
def test_each_rule_has_the_bounded_slowdown_of_the_table(golden: Path, trace: str) -> None:
    world, jobsets = windows_of(golden, trace)
    for name, row in EXPECTED.items():
        assert shown(bounded(played(world, jobsets, Rule(*name.split("/")))), row[trace]), name


def bounded(schedule: Schedule) -> float:
    """Mean bounded slowdown of all jobs of all windows."""
    return float(np.maximum(schedule.completion / np.maximum(schedule.duration, 10), 1).mean())


def shown(value: float, digits: str) -> bool:
    """Whether a value is the one that stands there, as far as it stands there."""
    return f"{value:.{len(digits.partition('.')[2])}f}" == digits
