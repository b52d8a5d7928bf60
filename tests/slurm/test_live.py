"""Reads and steers a real Slurm; `make test-slurm`. Without its programs all is skipped by name."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.slurm.decisions import order_of
from tests.slurm.private_accounts import PROGRAMS as ACCOUNTS
from tests.slurm.private_accounts import PrivateAccounts
from tests.slurm.private_slurm import GPUS, PrivateSlurm, missing_programs
from tests.waiting import wait_for
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.deciding import Limits
from tune_jobs.site.journal import read_journal
from tune_jobs.site.slurm import SlurmBackend
from tune_jobs.site.steering import Steerer, Steering
from tune_jobs.site.ticks import Ticks

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

OPERATOR = 65534  # nobody
STANDS_IN = re.compile(r"process (\d+) releases all held jobs until it is stopped")
ALL_SIZES = [(1, 8), (2, 100), (1, 64), (4, 240), (1, 1), (2, 66)]  # nodes, processors


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    if missing := missing_programs():
        pytest.skip(f"no {', '.join(missing)} on PATH; tests/slurm/README.md says how to get them")
    with PrivateSlurm() as started:
        yield started


@pytest.fixture
def empty(slurm: PrivateSlurm) -> Iterator[PrivateSlurm]:
    """Nothing waits or runs, before and after, and all nodes take jobs."""
    slurm.wait_until_idle()
    yield slurm
    slurm.cancel_all()


def submit(slurm: PrivateSlurm, count: int, seconds: float = 0.5, first: int = 0) -> list[int]:
    """Submits held jobs of different sizes and limits."""
    return [
        slurm.submit(f"sleep {seconds}", f"-N{nodes}", f"-n{size}", f"-t{1 + k % 7}", "--hold")
        for k in range(first, first + count)
        for nodes, size in [ALL_SIZES[k % len(ALL_SIZES)]]
    ]


@pytest.fixture
def steerers(tmp_path: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes that are ended, with their watchdogs, whatever becomes of a test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
    for number in STANDS_IN.findall(said_in(tmp_path)):
        with suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGTERM)


def said_in(folder: Path) -> str:
    """What steerers and their watchdogs have said."""
    path = folder / "said"
    return path.read_text() if path.exists() else ""


Steer = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def steer(empty: PrivateSlurm, tmp_path: Path, steerers: list[Any]) -> Steer:
    """Starts a steerer as a process of its own."""

    def start(*options: str) -> "subprocess.Popen[bytes]":
        steerers.append(_steer(empty, tmp_path, *options))
        return steerers[-1]

    return start


def _steer(
    slurm: PrivateSlurm, folder: Path, *options: str, before: Sequence[str] = (), root: bool = True
) -> "subprocess.Popen[bytes]":
    command = [*before, sys.executable, "-m", "tune_jobs.steer", "sjf:easy", "--act"]
    command += ["--as-root"] if root else []
    command += ["--tick", "0.5", "--watchdog", "20", "--out", str(folder / "steer.jsonl"), *options]
    environment = {**os.environ, **slurm.environment}
    if (wrappers := folder / "wrappers").exists():
        environment["PATH"] = f"{wrappers}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(REPOSITORY)
    with (folder / "said").open("ab") as said:
        return subprocess.Popen(command, env=environment, stderr=said, cwd=REPOSITORY)


def journal(folder: Path) -> list[dict[str, Any]]:
    path = folder / "steer.jsonl"
    return list(read_journal(path)) if path.exists() else []


def releases(folder: Path) -> int:
    return sum(len(entry.get("release", ())) for entry in journal(folder))


def holds(slurm: PrivateSlurm) -> bool:
    return "JobHeldUser" in slurm.run("squeue", "-h", "-o", "%r")


def test_held_jobs_are_released_until_all_have_run_and_no_decision_is_reversed(
    empty: PrivateSlurm, tmp_path: Path, steer: Steer
) -> None:
    jobs = [submit(empty, 1, 0.2 + k % 7 / 7, k)[0] for k in range(60)]
    process = steer("--until-empty")
    assert process.wait(timeout=300) == 0, (tmp_path / "said").read_text()
    states = empty.states()
    assert {states[job] for job in jobs} == {"COMPLETED"}
    order = order_of(tmp_path / "steer.jsonl", empty)
    assert (order.released, order.started, order.reversed) == (60, 60, 0)
    assert order.ticks > 5
    again = [sys.executable, "-m", "tune_jobs.steer", "sjf:easy", "--repeat"]
    done = subprocess.run(
        [*again, str(tmp_path / "steer.jsonl")], capture_output=True, text=True, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stdout


def test_the_watchdog_releases_all_jobs_of_a_steerer_that_was_killed(
    empty: PrivateSlurm, tmp_path: Path, steer: Steer
) -> None:
    blocker = [empty.submit("sleep 60", "-N4", "-n256", "--exclusive", "-t1", "--hold")]
    jobs = submit(empty, 20, 60)
    process = steer()
    wait_for(lambda: len(journal(tmp_path)) >= 2, "two ticks", process=process)
    process.kill()
    process.wait()
    wait_for(lambda: not holds(empty), "no held job")
    late = submit(empty, 1, 60)
    wait_for(lambda: not holds(empty), "no held job")
    assert {*jobs, *blocker, *late} <= set(empty.states())


FAULTS = {
    "squeue": ["exit 1", "exec sleep 600", "echo '?'; exit", "exit 0", "exec yes '7|main|x'"],
    "sinfo": ["exit 1", "exec sleep 600", "echo '?'; exit", "exit 0"],
    "scontrol": ['test "$1" != release || exit 1'],
}


@pytest.mark.parametrize(
    ("program", "fault"), [(program, fault) for program in FAULTS for fault in FAULTS[program]]
)
def test_all_held_jobs_are_released_when_slurm_answers_in_part(
    program: str, fault: str, empty: PrivateSlurm, tmp_path: Path, steer: Steer
) -> None:
    (tmp_path / "wrappers").mkdir()
    wrapper, broken = tmp_path / "wrappers" / program, tmp_path / "broken"
    broken.touch()
    original = shutil.which(program, path=empty.environment["PATH"])
    wrapper.write_text(f'#!/bin/sh\nif test -e {broken}; then {fault}; fi\nexec {original} "$@"\n')
    wrapper.chmod(0o755)
    jobs = [empty.submit("sleep 60", "-n1", "-t1", "--hold") for _ in range(3)]
    jobs += [empty.submit("sleep 60", "-n1", "-t1", "--hold", "--array=0-1")]
    process = steer()
    assert process.wait(timeout=100) == 1
    said = said_in(tmp_path)
    assert said.count("Slurm does not do what is asked") == 1
    if program == "scontrol":
        assert "not all held jobs could be released" in said
        broken.unlink()
    wait_for(lambda: not holds(empty), "no held job", timeout_s=10)
    assert set(jobs) <= set(empty.states())


def test_steering_goes_on_when_the_controller_was_killed(
    empty: PrivateSlurm, tmp_path: Path, steer: Steer
) -> None:
    gate = tmp_path / "gate"  # no job ends before, so none starts that the controller forgets
    wide = ("-N4", "-n256", "--exclusive", "-t10", "--hold")
    jobs = [empty.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", *wide)]
    jobs += submit(empty, 8)
    process = steer("--until-empty")
    wait_for(lambda: empty.states()[jobs[0]] == "RUNNING", "a start", process=process)
    empty.wait_until_saved(jobs[0])
    empty.kill_controller()
    wait_for(lambda: any(e["kind"] == "away" for e in journal(tmp_path)), "a failed look")
    empty.start_controller()
    gate.touch()
    assert process.wait(timeout=300) == 0, (tmp_path / "said").read_text()
    states = empty.states()
    assert {states[job] for job in jobs} == {"COMPLETED"}


class Cancelling(SlurmBackend):
    """A site whose user cancels a job between the look and the release."""

    victim = 0

    def start(self, jobs):  # type: ignore[no-untyped-def]
        subprocess.run(["scancel", str(self.victim)], check=True)
        return super().start(jobs)


def test_a_job_that_is_cancelled_meanwhile_is_nobody_s_error(
    empty: PrivateSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in empty.environment.items():
        monkeypatch.setenv(name, value)
    jobs = submit(empty, 3, 20)
    backend, lines = Cancelling(), []
    backend.victim = jobs[0]
    ticks = Ticks(backend, lines.append, tick_s=0.1, most=1)
    adviser = choose_adviser("fcfs:easy")
    Steerer(backend, ticks, adviser, "", Limits(), Steering(act=True), lines.append).run()
    assert str(jobs[0]) in lines[0]["release"]
    wait_for(lambda: empty.states()[jobs[1]] == "RUNNING", "the other job")
    assert empty.states()[jobs[0]] == "CANCELLED"


def test_names_of_jobs_do_nothing(
    empty: PrivateSlurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in empty.environment.items():
        monkeypatch.setenv(name, value)
    evil = f"a|b\n9|RUNNING|None\x1b[2J$(touch {tmp_path}/x);`touch {tmp_path}/x`"
    jobs = [empty.submit("true", "--hold", "-n1", "-J", evil, f"--comment={evil}")]
    jobs += submit(empty, 1)
    backend = SlurmBackend()
    found = {job.job: job for job in backend.read().jobs}
    assert set(map(str, jobs)) == set(found)
    assert backend.start([str(job) for job in jobs]) == []
    wait_for(lambda: empty.states()[jobs[0]] == "COMPLETED", "the job")
    assert not (tmp_path / "x").exists()


def test_gpus_are_read_and_no_job_is_released_that_finds_none(
    empty: PrivateSlurm, tmp_path: Path, steer: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in empty.environment.items():
        monkeypatch.setenv(name, value)
    asked = [
        ("--gres=gpu:3", 3),
        ("--gpus-per-node=2", 4),
        ("--gpus=2", 2),
        ("--gpus-per-task=1", 2),
    ]
    nodes = [1, 2, 1, 1]
    jobs = {
        str(empty.submit("sleep 1", option, f"-N{n}", "-n2", f"-t{k + 1}", "--hold")): gpus
        for k, ((option, gpus), n) in enumerate(zip(asked * 3, nodes * 3, strict=True))
    }
    found = SlurmBackend().read()
    assert {job.job: job.gpus for job in found.jobs} == jobs
    assert [(node.gpus, node.free_gpus) for node in found.nodes] == [(GPUS, GPUS)] * 4
    process = steer("--until-empty")
    assert process.wait(timeout=300) == 0, (tmp_path / "said").read_text()
    assert {empty.states()[int(job)] for job in jobs} == {"COMPLETED"}
    assert order_of(tmp_path / "steer.jsonl", empty).reversed == 0
    ticks = [entry for entry in journal(tmp_path) if entry["kind"] == "tick"]
    used = [sum(node[3] - node[6] for node in entry["snapshot"]["nodes"]) for entry in ticks]
    assert 8 <= max(used) <= 16  # 33 are asked for, and processors would do for all at once
    assert sum(len(entry["release"]) for entry in ticks) <= len(jobs) + 2


def test_in_priority_mode_the_queue_stands_in_the_policy_s_order(
    empty: PrivateSlurm, tmp_path: Path, steer: Steer
) -> None:
    empty.submit("sleep 60", "-N4", "-n256", "--exclusive", "-t2")
    wait_for(lambda: "RUNNING" in empty.states().values(), "a machine that is full")
    minutes = {empty.submit("sleep 1", "-n8", f"-t{k}"): k for k in (5, 9, 2, 7, 3)}
    process = steer("--mode", "priority", "--ticks", "3")
    assert process.wait(timeout=60) == 0, (tmp_path / "said").read_text()
    rows = empty.run("squeue", "-h", "-t", "PENDING", "-o", "%A %Q").splitlines()
    ranks = {int(job): int(rank) for job, rank in (row.split() for row in rows)}
    order = sorted(minutes, key=lambda job: -ranks[job])
    assert [minutes[job] for job in order] == [2, 3, 5, 7, 9]
    first, *later = [entry["ranks"] for entry in journal(tmp_path) if "ranks" in entry]
    assert len(first) == 5
    assert later == [[], []]


def test_the_container_s_script_starts_a_slurm_and_leaves_nothing(tmp_path: Path) -> None:
    if missing := missing_programs():
        pytest.skip(f"no {', '.join(missing)} on PATH; tests/slurm/README.md says how to get them")
    with tempfile.TemporaryDirectory(dir="/tmp") as above:  # a socket's path must be short
        folder = Path(above, "s")
        environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        environment |= {"PYTHONPATH": str(REPOSITORY), "METASCHED_SLURM_NODES": "1"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        script = str(REPOSITORY / "docker" / "start-slurm.sh")
        with subprocess.Popen([script], env=environment, stdout=subprocess.PIPE) as process:
            said = process.stdout.readline().decode()
            assert said == f"export SLURM_CONF={folder}/slurm.conf\n"
            process.terminate()
            assert process.wait(timeout=200) == 0
        assert not folder.exists()


def as_operator(folder: Path) -> list[str]:
    """Lets a command run as nobody, whom our files are open to, but who is not us for Slurm."""
    os.chown(folder, OPERATOR, -1)
    able = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", f"--reuid={OPERATOR}", "--clear-groups", *able]


def test_an_operator_steers_and_another_account_is_told_that_it_may_not() -> None:
    missing = [*missing_programs(), *missing_programs(ACCOUNTS)]
    missing += [] if shutil.which("setpriv") else ["setpriv"]
    if os.geteuid() or missing:
        pytest.skip(f"needs root to be somebody else, and these programs: {', '.join(missing)}")
    with PrivateSlurm(2) as slurm, PrivateAccounts(slurm) as accounts:
        slurm.folder.chmod(0o755)
        folder = slurm.folder / "operator"
        folder.mkdir()
        accounts.run("add", "account", "steering")
        accounts.run("add", "user", "nobody", "account=steering")
        jobs = [slurm.submit("true", "--hold", f"-n{k + 1}", "-t1") for k in range(3)]
        wait_for(lambda: "idle" in slurm.run("sinfo", "-h", "-o", "%t"), "nodes")
        before = as_operator(folder)
        other = _steer(slurm, folder, "--until-empty", before=before, root=False)
        assert other.wait(timeout=200) == 1
        said = (folder / "said").read_text()
        assert "Slurm does not let this account change others' jobs" in said
        assert {slurm.states()[job] for job in jobs} == {"PENDING"}
        accounts.run("modify", "user", "nobody", "set", "AdminLevel=Operator")
        operator = _steer(slurm, folder, "--until-empty", before=before, root=False)
        assert operator.wait(timeout=200) == 0, (folder / "said").read_text()
        assert {slurm.states()[job] for job in jobs} == {"COMPLETED"}
