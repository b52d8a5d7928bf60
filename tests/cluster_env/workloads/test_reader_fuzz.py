"""No file makes a reader fail: it gives jobs, or one sentence.

Files are whole logs with random damage. ``make fuzz SECONDS=600`` goes on for as long as is said.
"""

import gzip
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.recorded import RecordedJobs
from cluster_env.workloads.windows import resampled, window_by_time

COUNT = 1000
SECONDS = float(os.environ.get("METASCHED_FUZZ_SECONDS", "0"))
MOST_CHARACTERS = 500

SWF = b"""; Version: 2.2
; MaxProcs: 64
; UnixStartTime: 749458803
;   Note: made up
1 0 5 100 4 90.5 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1
2 5 -1 0 4 -1 -1 4 200 -1 0 92605928607567 1 -1 -1 -1 -1 -1
3\t7\t-1\t50.25\t-1\t-1\t-1\t8\t-1\t-1\t1\t2\t1\t-1\t-1\t-1\t-1\t-1
4 2e1 -1 30 128 -1 -1 128 30 -1 1 3 2 -1 -1 -1 -1
6 3 -1 3600 2 -1 -1 2 9 -1 1 2 1 -1 -1 -1 -1 -1 7
"""
CSV = b"""arrival,duration,processors,estimate,memory,gpus,user,queue,wait
1700000000,60,4,600,16,0,ada,short,0
1700000100.7,59.5,1,60,0,2,"bob, the other",long,12

1700000050,3600,16,7200,64,4,,long,3
"""
SACCT = b"""JobIDRaw|JobID|JobName|User|Group|State|Submit|Eligible|Start|End|Timelimit|NCPUS|AllocTRES
1|1|a|ada|bio|COMPLETED|1770000000|1770000000|1770000060|1770000360|00:10:00|4|cpu=4,mem=2G,node=1
1.batch|1.batch|batch||bio|COMPLETED|1770000060|1770000060|1770000060|1770000360||4|cpu=4
2|2|b|c|bob|bio|CANCELLED by 7|2026-02-02T02:41:40|Unknown|None|2026-02-02T02:51:40|1-00:00:00|1|
9|7_3|arr|ada|bio|TIMEOUT|1770000001|1770000090|1770000100|1770000700|UNLIMITED|2|cpu=2,gres/gpu:x=1
10|10+0|het|bob|phys|COMPLETED|1770000002|1770000002|1770000100|1770000200|Partition_Limit|1|cpu=1
11|10+1|het|bob|phys|COMPLETED|1770000002|1770000002|1770000100|1770000200|Partition_Limit|8|cpu=8
"""  # noqa: E501
JOBCOMP = b"""JobId=3 UserId=ada(7) GroupId=bio(9) Name=block JobState=COMPLETED Partition=main TimeLimit=1 StartTime=2026-11-22T10:40:23 EndTime=2026-11-22T10:40:31 NodeList=n3 NodeCnt=1 ProcCnt=64 WorkDir=/home/a b ReservationName= Tres=cpu=64,mem=6400M,node=1 Account= QOS= WcKey= Cluster=lab SubmitTime=2026-11-22T10:40:22 EligibleTime=2026-11-22T10:40:22 DerivedExitCode=0:0 ExitCode=0:0
JobId=4 UserId=bob(8) GroupId=bio(9) Name=x y JobState=CANCELLED Partition=main TimeLimit=UNLIMITED StartTime=2026-11-22T10:40:23 EndTime=2026-11-22T10:40:23 NodeList=(null) NodeCnt=0 ProcCnt=0 WorkDir=/ ReservationName= Tres=cpu=1 Account=phys QOS= WcKey= Cluster=lab SubmitTime=2026-11-22T10:40:22 EligibleTime=Unknown DerivedExitCode=0:0 ExitCode=0:0
"""  # noqa: E501
SACCT_JSON = b"""{"jobs": [
{"job_id": 7, "user": "ada", "state": {"current": ["COMPLETED"]}, "time": {"elapsed": 300, "submission": 1770000000, "start": 1770000060, "end": 1770000360, "limit": {"set": true, "infinite": false, "number": 10}}, "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}]}},
{"job_id": 8, "user": "bob", "state": "TIMEOUT", "time": {"elapsed": 60, "submission": 1770000001, "start": 1770000090, "end": 1770000150, "limit": 1}, "tres": {"allocated": [{"type": "cpu", "count": 2}, {"type": "gres", "name": "gpu", "count": 1}]}},
{"job_id": 9, "state": {"current": ["CANCELLED"]}, "time": {"elapsed": 0, "submission": 1770000002, "start": 0, "end": 1770000200}, "tres": {}}
]}
"""  # noqa: E501
PBS = b"""02/02/2026 02:41:40;Q;7.srv;queue=workq
02/02/2026 02:46:00;E;7.srv;user=ada group=bio queue=workq ctime=1770000000 etime=1770000000 start=1770000060 end=1770000360 exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=00:10:00 resources_used.walltime=00:05:00
02/02/2026 02:49:00;E;8[2].srv;user=bob group=bio queue=long ctime=1770000001 start=1770000090 end=1770000150 exec_host=n1/0+n2/1 Resource_List.nodes=2:ppn=1:gpus=1 Resource_List.mem=4gb
02/02/2026 02:50:00;E;9.srv;user=cyd queue=long ctime=1770000005 start=1770000095 end=1770000155 Resource_List.ncpus=1 Resource_List.walltime=60
"""  # noqa: E501
WHOLE = {
    **{"swf": SWF, "csv": CSV, "sacct": SACCT, "jobcomp": JOBCOMP},
    **{"sacct-json": SACCT_JSON, "pbs": PBS},
}
TOKENS = (
    *(b"-1", b"0", b"1e400", b"1e18", b"-0.5", b"nan", b"inf", b"1_0", b"0x1", b"9" * 5000),
    *(b"2147483647", b"2147483648", b"-2147483648", b"9223372036854775807"),
    *(b"9223372036854775808", b";", b",", b'"', b"\n", b"\r", b"\x00", b"\xff\xfe", b"\xd9\xa3"),
    *(b"; MaxProcs: -7\n", b"; UnixStartTime: 1e99\n", b"arrival", b"\xef\xbb\xbf", b" " * 40),
)


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """The file with a fault or several; sometimes compressed, whole or not."""
    parts = bytearray(data)
    for _ in range(1 + int(rng.poisson(0.5))):
        place = int(rng.integers(len(parts) + 1))
        length = int(rng.integers(0, 30))
        fault = rng.integers(6)
        if fault == 0:
            parts[place : place + length] = b""
        elif fault == 1:
            parts[place:place] = parts[place : place + length]
        elif fault == 2:
            parts[place:place] = TOKENS[int(rng.integers(len(TOKENS)))]
        elif fault == 3:
            words = bytes(parts).replace(b",", b" , ").split(b" ")
            words[int(rng.integers(len(words)))] = TOKENS[int(rng.integers(len(TOKENS)))]
            parts = bytearray(b" ".join(words).replace(b" , ", b","))
        elif fault == 4 and place < len(parts):
            parts[place] = int(rng.integers(256))
        else:
            head, *lines = bytes(parts).split(b"\n")
            parts = bytearray(b"\n".join([head, *rng.permutation(lines)]))
    whole = bytes(parts)
    if rng.random() < 0.1:
        whole = gzip.compress(whole, 1)
        if rng.random() < 0.5:
            whole = whole[: int(rng.integers(len(whole) + 1))]
    return whole


def use(jobs: RecordedJobs) -> JobSet:
    """What workloads do with jobs that were read."""
    rng = np.random.default_rng(0)
    assert jobs.num_jobs >= 1
    assert (np.diff(jobs.submit) >= 0).all()
    assert min(jobs.run.min(), jobs.estimate.min()) >= 1
    for numbers in jobs.ids.values():
        assert numbers.min() >= 0
    jobs.between(0, 0.6)
    window_by_time(jobs, 60, -1, rng)
    resampled(jobs, max(jobs.span // 3, 1), 5, 0, rng).jobset()
    return jobs.jobset()


def files(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    until = time.monotonic() + SECONDS
    made = 0
    while made < COUNT or time.monotonic() < until:
        kind = tuple(WHOLE)[made % len(WHOLE)]
        made += 1
        yield kind, damaged(rng, WHOLE[kind])


def refusal(kind: str, path: Path, words: str) -> str:
    """The sentence that a file is refused with; empty for one that is read."""
    try:
        use(read_log(path, kind))
    except InputError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(words) from error
    return ""


def test_damaged_logs_give_jobs_or_one_sentence(tmp_path: Path) -> None:
    seed = int(time.time()) if SECONDS else 0
    came: Counter[str] = Counter()
    for k, (kind, data) in enumerate(files(np.random.default_rng(seed))):
        path = tmp_path / f"{k % 8}.{kind}"
        path.write_bytes(data)
        sentence = refusal(kind, path, f"seed {seed}, file {k}: {data!r}")
        assert len(sentence) < MOST_CHARACTERS, data
        assert "\n" not in sentence, data
        came[f"{kind} {'refused' if sentence else 'read'}"] += 1
    print(f"\nseed {seed}: {dict(came)}")
    assert min(came[f"{kind} {what}"] for kind in WHOLE for what in ("read", "refused")) > 9
