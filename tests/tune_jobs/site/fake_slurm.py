"""Programs that stand for Slurm's: held jobs on an empty machine, and faults that a test turns on.

A job is an empty file, so that several processes may release jobs at once.
"""

import os
from collections.abc import Iterable
from pathlib import Path

_FAULTS = """
case $(cat {program}.fault 2>/dev/null) in
    fails) echo 'slurm_load error: Unable to contact slurm controller' >&2; exit 1;;
    refuses) echo 'Unexpected message received' >&2; exit 1;;
    forbids) echo 'Invalid user id' >&2; exit 1;;
    hangs) exec sleep 600;;
    garbage) echo '?'; echo 'x|y z'; exit;;
    empty) exit;;
    endless) exec yes '7|PENDING|JobHeldUser|a queue without an end';;
    slow) case "$*" in *-O*) sleep 8;; esac;;
esac
"""
_PROGRAMS = {
    "squeue": """
case "$*" in
    *%i*) for job in $(ls held); do echo "$job main JobHeldUser"; done
        for row in '97 main Resources' '98;x main JobHeldUser' '99 main JobHeldAdmin'; do
            echo "$row"
        done;;
    *-O*) for job in $(ls held); do
        echo "$job|PENDING|JobHeldUser|ann|main|1795402649|N/A|N/A|5:00|1|1|1|cpu=1||||\
|0|||||||||||"
        done;;
esac
""",
    "sinfo": "echo 'n1|idle|0/8/0/8|1000|0|(null)|(null)|main*||'\n",
    "scontrol": """
case "$*" in
    'show config') printf '%s\\n' 'ClusterName = lab' 'SlurmctldPort = {port}';;
    'show partition -o') echo 'PartitionName=main Nodes=n1 MaxTime=UNLIMITED State=UP';;
    '-a -o show job'*) for job in $(ls held); do
        case "$6" in ''|$job) echo "JobId=$job JobName=x JobState=PENDING Reason=JobHeldUser\
 Dependency=(null) Partition=main";; esac
        done;;
    release*) echo "$*" >>calls; for job in $(echo $2 | tr , ' '); do
        mv held/$job released/ 2>/dev/null
        done;;
esac
""",
}


class FakeSlurm:
    """Writes the programs into a folder.

    Args:
        folder: for them, on PATH; it holds what they note.
        jobs: that are held.
    """

    def __init__(self, folder: Path, jobs: Iterable[str]) -> None:
        self.folder, self.calls = folder, folder / "calls"
        self.cluster = f"lab  {os.getpid()}{abs(hash(folder)) % 10**9}"
        for name in ("held", "released"):
            (folder / name).mkdir()
        for job in jobs:
            self.hold(job)
        for program, text in _PROGRAMS.items():
            faults = _FAULTS.replace("{program}", program)
            if program == "scontrol":  # its faults concern releases alone
                faults = f'case "$*" in release*) {faults}\n;; esac'
            script = f"#!/bin/sh\ncd {folder}\n{faults}{text}"
            path = folder / program
            path.write_text(script.replace("{port}", self.cluster.split()[-1]))
            path.chmod(0o755)

    def fault(self, program: str, fault: str) -> None:
        """Turns a fault on, or off if it has no name."""
        (self.folder / f"{program}.fault").write_text(fault)

    def hold(self, job: str) -> None:
        """Submits a held job."""
        (self.folder / "held" / job).touch()

    @property
    def held(self) -> set[str]:
        """Jobs that are held."""
        return {path.name for path in (self.folder / "held").iterdir()}

    @property
    def released(self) -> set[str]:
        """Jobs that were released."""
        return {path.name for path in (self.folder / "released").iterdir()}
