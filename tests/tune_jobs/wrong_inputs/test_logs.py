"""Wrong job logs, machines and windows: each is refused in one sentence, and nothing is written."""

import gzip
import os
from pathlib import Path

import pytest

from tests.tune_jobs.wrong_inputs.conftest import Refuse

SWF_JOB = "1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1\n"
HEAD = "arrival,duration,processors"
FILES: dict[str, bytes] = {
    "gpus.csv": f"{HEAD},gpus\n0,60,2,1\n".encode(),
    "prose.txt": b"Dear colleagues,\nhere is our log.\n",
    "picture.swf": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "empty.swf": b"",
    "empty.csv": b"",
    "header.swf": b"; MaxProcs: 8\n",
    "header.csv": HEAD.encode(),
    "unusable.swf": (SWF_JOB.replace(" 100 ", " 0 ") + SWF_JOB.replace(" 4 ", " 0 ")).encode(),
    "wide.swf": b"; MaxProcs: 2\n" + SWF_JOB.encode(),
    "negative.swf": b"; MaxProcs: -3\n" + SWF_JOB.encode(),
    "cut.swf.gz": gzip.compress(SWF_JOB.encode() * 99)[:-9],
    "folder.csv/inside": b"",
}
LINES = (
    *("trace", "trace nowhere.swf", "trace prose.txt", "trace picture.swf", "trace empty.swf"),
    *("trace empty.csv", "trace header.swf", "trace header.csv", "trace unusable.swf"),
    *("trace wide.swf", "trace negative.swf", "trace cut.swf.gz", "trace folder.csv"),
    *("trace pipe", "trace /dev/zero", "trace site.csv extra", "trace site.csv --out site.csv"),
    *("trace site.csv --processors 0", "trace site.csv --processors -4"),
    *("trace site.csv --processors many", "trace site.csv --processors 1e30"),
    *("trace gpus.csv --gpus 0", "trace site.csv --gpus 4", "trace site.csv --rules paper"),
    *("trace site.csv --set task.workload.stretch=0", "trace site.csv --set nosuch=1"),
    *("trace site.csv --set task.workload.kind=lublin", "trace site.csv --jobs 3"),
    *("replay", "replay nowhere.csv --processors 8", "replay prose.txt --processors 8"),
    *("replay site.csv", "replay gpus.csv --processors 8", "replay unusable.swf --processors 8"),
    *("replay wide.swf --policies fcfs", "replay site.csv --processors 0"),
    *(
        f"replay site.csv --processors 8 {words}"
        for words in (
            *(
                "--policies nosuch",
                "--policies fcfs:nosuch",
                "--policies ,",
                "--policies fcfs,fcfs",
            ),
            *("--policies saf-strict", "--policies hold:8", "--policies rls:nosuch"),
            *(
                "--policies runs/none",
                "--policies runs/good",
                "--policies empty",
                "--policies 'no/*'",
            ),
            *("--seed -1", "--decode best", "--kill-at-estimate perhaps", "--backfilling nosuch"),
            *("--processors 8 --set task.world.processors=8", "--set task.world.kind=deeprm"),
            *("--set task.workload.offset=999999", "--set task.workload.estimates=nosuch"),
            *("--set task.workload.scaled_load=-1", "--out site.csv", "extra"),
        )
    ),
    *("whatif site.csv --processors 8", "whatif site.csv --change policy=sjf"),
    *(
        f"whatif site.csv --processors 8 --change {words}"
        for words in (
            *("nosuch=3", "processors", "=3", "processors=", "processors=many", "processors=-8"),
            *("gpus=+1", "load=0", "load=-100%", "policy=nosuch", "policy=runs/none", "''"),
            *("policy=fcfs:nosuch", "policy=sjf --policy fcfs:nosuch"),
            *("max-wait=soon", "run-times=nosuch", "kill-at-estimate=perhaps", "processors=1e3"),
            *("task.world.nosuch=1", "task.world.kind=deeprm", "task.workload.path=x.csv"),
            *("policy=sjf --change policy=saf", "policy=sjf --policy nosuch", "processors=99%"),
            *("backfilling=nosuch", "policy=sjf --out site.csv", "processors=99999999999999"),
            *("policy=sjf --site nowhere.conf", "policy=sjf extra", "seed=1"),
        )
    ),
    *(
        f"compare --set task.world.kind=hpc --set task.workload.trace=site.csv {words}"
        for words in (
            *("--processors 3 --window -5", "--processors 8 --window x", "--processors 0"),
            *("--processors 8 --window 5 --set task.workload.jobs=5", "--policies nosuch"),
            *("--processors 8 --policies fcfs:nosuch", "--processors 8 --warmup 99999999"),
            *("--processors 8 --at 0.7", "--processors 8 --set task.workload.jobs=-1"),
            *("--processors 8 --set task.workload.splits=[0.8,0.6]", "--gpus 4"),
            *(
                "--processors 8 --set task.workload.block=-1",
                "--processors 8 --set task.workload.x=1",
            ),
        )
    ),
    "compare --set task.world.kind=hpc --set task.workload.trace=wide.swf --processors 2",
    "compare --set task.world.kind=hpc --set task.workload.trace=unusable.swf",
    "compare --decide --policies hpc-order --set task.workload.trace=site.csv",
    "train hpc-smoke --set task.workload.trace=unusable.swf",
    "train hpc-smoke --set task.workload.estimates=gaussian:x",
    "train hpc-smoke --set task.workload.load=-1",
    "train hpc-smoke --set task.world.gpus=4",
)


@pytest.fixture(scope="session")
def logs(made: Path) -> Path:
    """The folder of the other wrong inputs, with job logs; nothing of it is ever changed."""
    for name, data in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes(data)
    os.mkfifo(made / "pipe")
    return made


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_log_or_machine_is_refused(line: str, logs: Path, refuse: Refuse) -> None:
    refuse(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("trace unusable.swf", "of its 2 rows 1 has no run time above 0; 1 asks for no"),
        ("trace wide.swf", "all 1 jobs of"),
        ("trace prose.txt", "line 1: 'Dear colleagues,' is no line of SWF, PBS or jobcomp"),
        (
            "replay site.csv",
            "does not record how many processors the machine has; give the number, as in",
        ),
        (
            "replay gpus.csv --processors 8",
            "how many gpus the machine has; give the number, as in --gpus 1",
        ),
        ("trace site.csv --gpus 4", "but the machine of 4 processors counts processors and gpus"),
        ("replay site.csv --processors 8 --policies sjff", "did you mean 'sjf'?"),
        (
            "compare --set task.world.kind=hpc --set task.workload.trace=site.csv --window -5 "
            "--processors 8",
            "must be 0 or more, but None, -5 and 0 were given",
        ),
    ],
)
def test_the_sentence_says_what_is_wrong(line: str, words: str, logs: Path, refuse: Refuse) -> None:
    assert words in refuse(line)
