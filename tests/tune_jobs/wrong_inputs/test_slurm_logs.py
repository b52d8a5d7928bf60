"""Wrong logs of Slurm: each is refused in one sentence with file, line and field."""

from pathlib import Path

import pytest

from tests.tune_jobs.wrong_inputs.conftest import Refuse

HEAD = "JobIDRaw|State|Submit|Start|End|AllocCPUS|Timelimit\n"
JOB = "1|COMPLETED|1770000000|1770000060|1770000660|4|00:20:00\n"
LINE = (
    "JobId=1 UserId=ada(5) GroupId=bio(5) Name=a JobState=FAILED Partition=p TimeLimit=5 "
    "StartTime=2026-03-01T08:00:00 EndTime=2026-03-01T08:01:00 NodeList=n1 NodeCnt=1 ProcCnt=4 "
    "WorkDir=/ ReservationName= Tres=cpu=4 SubmitTime=2026-03-01T07:59:00\n"
)
FILES = {
    "good.txt": HEAD + JOB,
    "bare.txt": JOB,
    "narrow.txt": HEAD.replace("|Start", "") + JOB,
    "padded.txt": HEAD.replace("|", "    ") + "-------- --------\n",
    "short.txt": HEAD + JOB + "2|COMPLETED|1770\n",
    "time.txt": HEAD + JOB + JOB.replace("1770000060", "yesterday"),
    "cpus.txt": HEAD + JOB.replace("|4|", "|four|"),
    "limit.txt": HEAD + JOB.replace("00:20:00", "forever"),
    "waiting.txt": HEAD + "1|PENDING|1770000000|Unknown|Unknown|0|00:20:00\n",
    "header.txt": HEAD,
    "comp.txt": LINE,
    "broken.comp": LINE + "JobId=2 UserId=\n",
    "prose.comp": LINE + "and then?\n",
}


@pytest.fixture(scope="session")
def slurm_logs(made: Path) -> Path:
    """The folder of the other wrong inputs, with logs of Slurm in a folder of their own."""
    (made / "slurm").mkdir(exist_ok=True)
    for name, text in FILES.items():
        (made / "slurm" / name).write_text(text)
    return made


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("trace slurm/bare.txt", "line 1: a header with names as JobIDRaw, State, Submit"),
        ("trace slurm/narrow.txt", "line 1: the header lacks the column Start"),
        ("trace slurm/padded.txt", "line 1: columns are padded with spaces"),
        ("trace slurm/short.txt", "line 3: 7 values are expected, but there are 3"),
        ("trace slurm/time.txt", "line 3: Start must be a time like 2026-03-01T08:00:00"),
        ("replay slurm/cpus.txt --processors 4", "line 2: AllocCPUS must be a whole number"),
        ("replay slurm/limit.txt --processors 4", "line 2: Timelimit must be a limit like"),
        ("replay slurm/waiting.txt --processors 4", "of its 1 rows 1 was still waiting"),
        ("trace slurm/header.txt", "holds no job"),
        ("trace slurm/broken.comp", "line 2: the job lacks JobState="),
        ("trace slurm/prose.comp", "line 2: a job begins with JobId=NUMBER"),
        ("trace slurm/good.txt --time-zone Nowhere/Town", "there is no time zone 'Nowhere/Town'"),
        ("trace slurm/good.txt --time-zone ../../etc/passwd", "there is no time zone"),
        ("trace slurm/good.txt --log-format sact", "did you mean 'sacct'?"),
        ("trace slurm/good.txt --log-format jobcomp", "line 1: a job begins with JobId=NUMBER"),
        ("trace slurm/good.txt --log-format swf", "line 1: a job has 18 numbers"),
        ("trace slurm/comp.txt --log-format sacct", "line 1: a header with names as JobIDRaw"),
        ("replay slurm/good.txt", "does not record how many processors the machine has"),
        ("trace slurm/good.txt --gpus 4 --memory 9", "counts processors and memory and gpus"),
        (
            "compare --set task.world.kind=hpc --set task.workload.trace=slurm/cpus.txt",
            "line 2: AllocCPUS must be",
        ),
        ("train hpc-smoke --set task.workload.trace=slurm/time.txt", "line 3: Start must be"),
        (
            "train hpc-smoke --set task.workload.trace=slurm/good.txt "
            "--set task.workload.log_format=sakt",
            "did you mean 'sacct'?",
        ),
    ],
)
def test_a_wrong_log_of_slurm_is_refused(
    line: str, words: str, slurm_logs: Path, refuse: Refuse
) -> None:
    sentence = refuse(line)
    assert words in sentence
    assert "ada" not in sentence  # what --hash-users hides is hidden here, too
