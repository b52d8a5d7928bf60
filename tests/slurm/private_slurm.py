"""A real Slurm on loopback: fake nodes, an own munge, and nothing installed or left behind.

The programs come from PATH, or from Debian's packages unpacked into a folder that
`METASCHED_SLURM_ROOT` names (tests/slurm/README.md). Nothing but 127.0.0.1 is listened on.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

ROOT = "METASCHED_SLURM_ROOT"
PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "sinfo", "scontrol", "sbatch", "scancel")
CPUS, MEMORY_MIB = 64, 262_144
START_TIMEOUT_S = 60.0
_BEYOND_PATH = ("/usr/sbin", "/sbin", "/usr/local/sbin")  # where daemons lie, for ordinary users

_CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={node_ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=2,sched_min_interval=0
PriorityType={priority}
SlurmdParameters=config_overrides
ReturnToService=2
MaxJobCount=20000
MinJobAge=3600
GresTypes=gpu
KillWait=2
{plugins}
"""


class PrivateSlurm:
    """A controller and fake nodes as own processes. Use it in a ``with`` statement.

    Args:
        num_nodes: fake nodes of `CPUS` processors and `MEMORY_MIB` each.
        priority: Slurm's plugin that orders the queue.
    """

    def __init__(self, num_nodes: int = 4, priority: str = "priority/multifactor") -> None:
        self._programs = find_programs()
        # Paths of Unix sockets must stay below 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))
        self.environment = _environment(self._programs, self.folder / "slurm.conf")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._nodes = [f"n{k + 1}" for k in range(num_nodes)]
        self._write_config(priority)

    def __enter__(self) -> Self:
        try:
            self._start_munge()
            self.start_controller()
            for node in self._nodes:
                stepd = self._unpacked("usr/sbin/slurmstepd-wlm")
                self._spawn("slurmd", "-D", "-N", node, *(["-d", str(stepd)] if stepd else []))
            self._wait_for(self._all_idle, "nodes that are idle")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_controller(self) -> None:
        """Starts slurmctld, also after a kill, and waits until it answers."""
        self._spawn("slurmctld", "-D", name="slurmctld")
        self._wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), "a controller")

    def kill_controller(self) -> None:
        """Kills slurmctld, as a crash would."""
        controller = self._processes.pop("slurmctld")
        controller.kill()
        controller.wait()

    def wait_until_saved(self) -> None:
        """Waits until the controller has written down all that has happened until now."""
        now, file = time.time(), self.folder / "state" / "job_state"
        self._wait_for(lambda: file.exists() and file.stat().st_mtime > now, "a saved state")

    @property
    def controller_pid(self) -> int:
        """Number of slurmctld's process."""
        return self._processes["slurmctld"].pid

    def run(self, program: str, *arguments: str, check: bool = True, text: str = "") -> str:
        """What a program of Slurm prints."""
        done = subprocess.run(
            [self._programs[program], *arguments],
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, script: str, *options: str) -> int:
        """Submits a job; returns its number."""
        text = f"#!/bin/sh\n{script}\n"
        out = self.run("sbatch", "--parsable", "-o", "/dev/null", *options, text=text)
        return int(out.partition(";")[0])

    def give_gpus(self, count: int) -> None:
        """Makes Slurm believe that each node has some GPUs, until its daemons start again.

        No device is needed for that, as none is there. What slurm.conf says of them, Debian's
        build passes over.
        """
        self.run("scontrol", "update", f"NodeName={','.join(self._nodes)}", f"Gres=gpu:{count}")

    def states(self) -> dict[int, str]:
        """State of each job that the controller remembers."""
        rows = self.run("squeue", "-h", "-t", "all", "-o", "%A %T").split("\n")
        return {int(job): state for job, _, state in (row.partition(" ") for row in rows if row)}

    def cancel_all(self) -> None:
        """Cancels all jobs and waits until none is left."""
        self.run("scancel", "--full", "-u", pwd.getpwuid(os.getuid()).pw_name)
        self._wait_for(lambda: not self.run("squeue", "-h", "-o", "%A").strip(), "an empty queue")

    def wait_until_idle(self) -> None:
        """Waits until all nodes take jobs, also such that the controller has drained."""
        if not self._all_idle():
            nodes = f"NodeName={','.join(self._nodes)}"
            self.run("scontrol", "update", nodes, "State=RESUME", check=False)
            self._wait_for(self._all_idle, "nodes that are idle")

    def close(self) -> None:
        """Ends all jobs and processes, and removes the folder."""
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired, OSError):
            self.run("scancel", "--full", "-u", pwd.getpwuid(os.getuid()).pw_name)
            deadline = time.monotonic() + 15
            while self.run("squeue", "-h", "-o", "%A").strip() and time.monotonic() < deadline:
                time.sleep(0.2)
        for process in reversed(list(self._processes.values())):
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in _processes_with(f"SLURM_CONF={self.environment['SLURM_CONF']}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # slurmstepd ignores SIGTERM
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_config(self, priority: str) -> None:
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(1 + len(self._nodes))
        plugins = self._unpacked("usr/lib/x86_64-linux-gnu/slurm-wlm")
        text = _CONFIG.format(
            host=host,
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=self.folder,
            port=ports[0],
            node_ports=ports[1:],
            priority=priority,
            plugins=f"PluginDir={plugins}" if plugins else "",
        )
        for node, port in zip(self._nodes, ports[1:], strict=True):
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} "
                f"RealMemory={MEMORY_MIB} State=UNKNOWN\n"
            )
        text += (
            "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP "
            "DefMemPerCPU=100\n"
        )
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text("AutoDetect=off\n")
        (self.folder / "state").mkdir()
        for node in self._nodes:
            (self.folder / f"spool.{node}").mkdir()

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        paths = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "log", "pid")]
        paths.append(f"--seed-file={self.folder}/munge.seed")
        self._spawn("munged", "-F", "--force", f"--socket={self.folder}/munge.socket", *paths)
        self._wait_for((self.folder / "munge.socket").exists, "munged")

    def _spawn(self, program: str, *arguments: str, name: str = "") -> None:
        log = (self.folder / f"{program}.out").open("ab")
        with log:
            self._processes[name or f"{program}{len(self._processes)}"] = subprocess.Popen(
                [self._programs[program], *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _all_idle(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-o", "%t", check=False).split()
        return states == ["idle"] * len(self._nodes)

    def _wait_for(self, holds: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {START_TIMEOUT_S:.0f} s for {what}: {self.folder}")
            time.sleep(0.1)

    def _unpacked(self, part: str) -> Path | None:
        root = os.environ.get(ROOT)
        return Path(root, part) if root else None


def find_programs() -> dict[str, str]:
    """Paths of Slurm's programs by name; those that are missing are left out."""
    root = os.environ.get(ROOT)
    folders = [f"{root}/usr/bin", f"{root}/usr/sbin"] if root else [os.environ["PATH"]]
    path = os.pathsep.join([*folders, *(() if root else _BEYOND_PATH)])
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    for name in ("slurmctld", "slurmd"):  # Debian's alternatives are links that unpacking omits
        found[name] = found[name] or shutil.which(f"{name}-wlm", path=path)
    return {name: path for name, path in found.items() if path}


def missing_programs() -> list[str]:
    """Names of the programs that are not there."""
    return [name for name in PROGRAMS if name not in find_programs()]


def _environment(programs: Mapping[str, str], config: Path) -> dict[str, str]:
    root = os.environ.get(ROOT)
    folders = list(dict.fromkeys(str(Path(path).parent) for path in programs.values()))
    environment = {
        "PATH": os.pathsep.join([*folders, os.environ["PATH"]]),
        "HOME": os.environ.get("HOME", "/"),
        "SLURM_CONF": str(config),
    }
    if root:
        libraries = Path(root, "usr/lib/x86_64-linux-gnu")
        environment["LD_LIBRARY_PATH"] = f"{libraries}:{libraries}/slurm-wlm"
    return environment


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _processes_with(entry: str) -> Iterator[int]:
    """Processes whose environment holds an entry; ours alone can be read."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and entry.encode() in _entries(folder):
                yield int(folder.name)


def _entries(folder: Path) -> Sequence[bytes]:
    return (folder / "environ").read_bytes().split(b"\0")
