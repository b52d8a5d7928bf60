"""A real Slurm on loopback: fake nodes, an own munge, and nothing installed or left behind.

To try `metasched shadow` and `steer` where there is no site, and for tests. The programs come from
PATH, or from Debian's packages unpacked into a folder that `METASCHED_SLURM_ROOT` names
(tests/slurm/README.md). Nothing but 127.0.0.1 is listened on.

python -m tests.slurm.private_slurm --nodes 4     # until it is ended
"""

import argparse
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

ROOT = "METASCHED_SLURM_ROOT"
PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "sinfo", "scontrol", "sbatch", "scancel")
STEPD = "slurmstepd"
CPUS, MEMORY_MIB, GPUS = 64, 262_144, 4
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
"""They stand for GPUs, of which Slurm counts none without a device; these are everywhere."""
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
SchedulerParameters={scheduler}
PriorityType={priority}
SlurmdParameters=config_overrides
ReturnToService=2
MaxJobCount=20000
MinJobAge=3600
GresTypes=gpu
KillWait=2
{plugins}
"""


PARTITION = (
    "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP "
    "DefMemPerCPU=100"
)
SCHEDULER = "batch_sched_delay=0,bf_interval=2,sched_min_interval=0"


class PrivateSlurm:
    """A controller and fake nodes as own processes. Use it in a ``with`` statement.

    Args:
        num_nodes: fake nodes of `CPUS` processors and `MEMORY_MIB` each.
        priority: Slurm's plugin that orders the queue.
        folder: that it makes, and removes again; by default one of a new name.
        partitions: their lines of slurm.conf.
        scheduler: value of SchedulerParameters.
    """

    def __init__(
        self,
        num_nodes: int = 4,
        priority: str = "priority/multifactor",
        folder: Path | None = None,
        partitions: Sequence[str] = (PARTITION,),
        scheduler: str = SCHEDULER,
    ) -> None:
        # Paths of Unix sockets must stay below 107 characters.
        self.folder = folder or Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))
        if folder:
            folder.mkdir(mode=0o755)
        self._programs = self._linked(find_programs([*PROGRAMS, STEPD]))
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.host = socket.gethostname().partition(".")[0]
        unpacked = self._unpacked("usr/lib/x86_64-linux-gnu/slurm-wlm")
        self.plugins = f"PluginDir={unpacked}" if unpacked else ""
        self.environment = _environment(self._programs, self.folder / "slurm.conf")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._nodes = [f"n{k + 1}" for k in range(num_nodes)]
        self._write_config(priority, partitions, scheduler)

    def __enter__(self) -> Self:
        try:
            self._start_munge()
            self.start_controller()
            for node in self._nodes:
                stepd = self._programs.get(STEPD) if os.environ.get(ROOT) else None
                self._spawn("slurmd", "-D", "-N", node, *(["-d", stepd] if stepd else []))
            self.wait_for(self._all_idle, "nodes that are idle")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_controller(self) -> None:
        """Starts slurmctld, also after a kill, and waits until it answers."""
        self._spawn("slurmctld", "-D", name="slurmctld")
        self.wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), "a controller")

    def kill_controller(self) -> None:
        """Kills slurmctld, as a crash would."""
        controller = self._processes.pop("slurmctld")
        controller.kill()
        controller.wait()

    def stop_controller(self) -> None:
        """Ends slurmctld in order: it writes down what it knows."""
        controller = self._processes.pop("slurmctld")
        controller.terminate()
        controller.wait(timeout=START_TIMEOUT_S)

    def configure(self, **settings: str) -> None:
        """Changes entries of slurm.conf; daemons that start from now on read them."""
        path = self.folder / "slurm.conf"
        kept = [
            line for line in path.read_text().split("\n") if line.partition("=")[0] not in settings
        ]
        path.write_text("\n".join([*(f"{key}={value}" for key, value in settings.items()), *kept]))

    def wait_until_saved(self, job: int) -> None:
        """Waits until the controller has written down all that has happened until now.

        It writes nothing while nothing changes, so a comment on a job asks for it; the second time,
        because a state that appears after the first may have been collected before.
        """
        file = self.folder / "state" / "job_state"
        for _ in range(2):
            now = time.time()
            self.run("scontrol", "update", f"JobId={job}", "AdminComment=saved")
            self.wait_for(
                lambda now=now: file.exists() and file.stat().st_mtime > now, "a saved state"
            )

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

    def states(self) -> dict[int, str]:
        """State of each job that the controller remembers."""
        rows = self.run("squeue", "-h", "-t", "all", "-o", "%A %T").split("\n")
        return {int(job): state for job, _, state in (row.partition(" ") for row in rows if row)}

    def cancel_all(self) -> None:
        """Cancels all jobs and waits until none is left."""
        self.run("scancel", "--full", "-u", self.user)
        self.wait_for(lambda: not self.run("squeue", "-h", "-o", "%A").strip(), "an empty queue")

    def wait_until_idle(self) -> None:
        """Waits until all nodes take jobs, also such that the controller has drained."""
        if not self._all_idle():
            nodes = f"NodeName={','.join(self._nodes)}"
            self.run("scontrol", "update", nodes, "State=RESUME", check=False)
            self.wait_for(self._all_idle, "nodes that are idle")

    def close(self) -> None:
        """Ends all jobs and processes, and removes the folder."""
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired, OSError):
            self.run("scancel", "--full", "-u", self.user)
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

    def _linked(self, programs: dict[str, str]) -> dict[str, str]:
        """The same under their own names: daemons look at theirs to find out what they are."""
        (self.folder / "bin").mkdir()
        for name, path in programs.items():
            if Path(path).name != name:
                link = self.folder / "bin" / name
                link.symlink_to(path)
                programs[name] = str(link)
        return programs

    def _write_config(self, priority: str, partitions: Sequence[str], scheduler: str) -> None:
        host = self.host
        ports = free_ports(1 + len(self._nodes))
        text = _CONFIG.format(
            host=host,
            user=self.user,
            folder=self.folder,
            port=ports[0],
            node_ports=ports[1:],
            priority=priority,
            scheduler=scheduler,
            plugins=self.plugins,
        )
        for node, port in zip(self._nodes, ports[1:], strict=True):
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} "
                f"RealMemory={MEMORY_MIB} Gres=gpu:{GPUS} State=UNKNOWN\n"
            )
        text += "".join(f"{line}\n" for line in partitions)
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(
            "".join(["AutoDetect=off\n", *(f"Name=gpu File={device}\n" for device in DEVICES)])
        )
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
        self.wait_for((self.folder / "munge.socket").exists, "munged")

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
        rows = self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False).splitlines()
        states = dict(row.split() for row in rows)  # a node has a row in each of its partitions
        return states == dict.fromkeys(self._nodes, "idle")

    def wait_for(self, holds: Callable[[], Any], what: str) -> None:
        """Waits until something holds, or fails."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {START_TIMEOUT_S:.0f} s for {what}: {self.folder}")
            time.sleep(0.1)

    def _unpacked(self, part: str) -> Path | None:
        root = os.environ.get(ROOT)
        return Path(root, part) if root else None


def find_programs(names: Sequence[str] = PROGRAMS) -> dict[str, str]:
    """Paths of programs by name; those that are missing are left out."""
    root = os.environ.get(ROOT)
    folders = [f"{root}/usr/bin", f"{root}/usr/sbin"] if root else [os.environ["PATH"]]
    path = os.pathsep.join([*folders, *(() if root else _BEYOND_PATH)])
    found = {
        name: shutil.which(name, path=path)
        or shutil.which(f"{name}-wlm", path=path)  # Debian's alternatives are links of installing
        for name in names
    }
    return {name: path for name, path in found.items() if path}


def missing_programs(names: Sequence[str] = PROGRAMS) -> list[str]:
    """Names of the programs that are not there."""
    return [name for name in names if name not in find_programs(names)]


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


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _processes_with(entry: str) -> Iterator[int]:
    """Processes of other sessions than ours whose environment holds an entry."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            ours = not folder.name.isdigit() or os.getsid(int(folder.name)) == os.getsid(0)
            if not ours and entry.encode() in _entries(folder):
                yield int(folder.name)


def _entries(folder: Path) -> Sequence[bytes]:
    return (folder / "environ").read_bytes().split(b"\0")


def main() -> int:
    """Runs until somebody ends it."""
    parser = argparse.ArgumentParser(description="A private Slurm on loopback, with fake nodes.")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="made, and removed at the end")
    given = parser.parse_args()
    if missing := missing_programs():
        parser.error(f"no {', '.join(missing)} on PATH; tests/slurm/README.md says what to install")
    host = socket.gethostname()
    try:
        address = socket.gethostbyname(host)
    except OSError:
        address = "nothing"
    if not address.startswith("127."):
        parser.error(f"{host} must be 127.0.0.1 in /etc/hosts, and is {address}")
    if given.folder and given.folder.exists():
        parser.error(f"{given.folder} exists")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    with PrivateSlurm(given.nodes, folder=given.folder) as slurm:
        sys.stdout.write(f"export SLURM_CONF={slurm.environment['SLURM_CONF']}\n")
        sys.stdout.flush()
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
