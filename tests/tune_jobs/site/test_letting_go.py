"""No fault of Slurm, of the steerer or of its watchdog leaves jobs held for ever, or in silence."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.tune_jobs.site.fake_slurm import FakeSlurm
from tests.waiting import wait_for
from tune_jobs import cli
from tune_jobs.site import locking, safety
from tune_jobs.site import slurm as slurm_module
from tune_jobs.site.journal import read_journal

JOBS = {"7", "8", "12"}
STANDS_IN = re.compile(r"process (\d+) releases all held jobs until it is stopped")
SHORT = ("--tick", "0.2", "--watchdog", "6")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    folder = tmp_path / "slurm"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return FakeSlurm(folder, JOBS)


@pytest.fixture
def dogs(slurm, monkeypatch):
    """Watchdogs that a steerer starts; those that still run are ended."""
    found = []

    class Noted(safety.Watchdog):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(safety, "Watchdog", Noted)
    yield found
    for dog in found:
        dog._process.terminate()
        dog._process.wait()
    for lock in locking._folders()[0].glob(f"steer-*{slurm.cluster.split()[-1]}.lock"):
        lock.unlink()  # of those that were killed


def steer(*options):
    command = ["steer", "saf:easy", "--act", "--as-root", "--out", "steer.jsonl", *options]
    return cli.run(cli.metasched, command)


def messages(capfd):
    return capfd.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("program", "fault", "problem"),
    [
        ("sinfo", "fails", "sinfo failed: slurm_load error: Unable to contact"),
        ("sinfo", "hangs", "sinfo did not answer within"),
        ("sinfo", "garbage", "sinfo printed 2 rows, and none can be read"),
        ("sinfo", "empty", "sinfo lists no node"),
        ("squeue", "fails", "squeue failed: slurm_load error: Unable to contact"),
        ("squeue", "hangs", "squeue did not answer within"),
        ("squeue", "garbage", "squeue printed 2 rows, and none can be read"),
        ("squeue", "empty", "squeue lists no job, but scontrol shows held jobs"),
        ("squeue", "endless", "squeue "),  # did not answer within, or printed too much
    ],
)
def test_a_steerer_without_a_completed_tick_lets_go(program, fault, problem, slurm, dogs, capfd):
    slurm.fault(program, fault)
    assert steer(*SHORT) == 1
    assert (slurm.held, slurm.released) == (set(), JOBS)
    first, *_, last = (line for line in messages(capfd) if "that waits longer" not in line)
    assert first.startswith(f"metasched: Slurm does not do what is asked: {problem}")
    assert "steering has ended: no tick was completed for" in last
    assert f"process {dogs[0].pid} releases later ones until it is stopped" in last
    assert [line["kind"] for line in read_journal(Path("steer.jsonl"))].count("tick") == 0
    slurm.fault(program, "")
    slurm.hold("20")  # nobody steers: the watchdog releases it
    wait_for(lambda: "20" in slurm.released, "a release")


def test_what_slurm_refuses_to_release_is_said_and_released_as_soon_as_it_can_be(
    slurm, dogs, capfd, monkeypatch
):
    monkeypatch.setattr(safety, "PATIENCE_S", 1.0)
    slurm.fault("scontrol", "refuses")
    assert steer(*SHORT) == 1
    text = capfd.readouterr().err
    assert "stays held when it is released: scontrol failed: Unexpected message" in text
    assert "held jobs cannot be released yet: 3 stay held: scontrol failed: Unexpected" in text
    assert "not all held jobs could be released (3 stay held" in text
    assert slurm.held == JOBS
    slurm.fault("scontrol", "")
    wait_for(lambda: slurm.released == JOBS, "releases")


def test_a_slow_site_is_steered_with_the_default_times(slurm, dogs, capfd):
    """A squeue of 8 seconds, as on a large site."""
    slurm.fault("squeue", "slow")
    assert steer("--ticks", "1") == 0
    assert slurm.released == JOBS
    assert not any("Slurm does not do" in line for line in messages(capfd))
    (tick,) = read_journal(Path("steer.jsonl"))
    assert set(tick["release"]) == JOBS


def test_what_fails_for_a_while_is_said_once_and_so_is_the_recovery(slurm, dogs, capfd):
    slurm.fault("sinfo", "fails")
    journal = Path("steer.jsonl").absolute()

    def mend():
        wait_for(lambda: journal.exists() and "away" in journal.read_text(), "a failure")
        slurm.fault("sinfo", "")

    threading.Thread(target=mend, daemon=True).start()
    assert steer("--tick", "0.2", "--ticks", "3", "--watchdog", "60") == 0
    said = [line for line in messages(capfd) if "Slurm" in line]
    assert [line.rpartition(": ")[2] for line in said] == [
        "Unable to contact slurm controller",
        "Slurm answers again",
    ]
    kinds = [line["kind"] for line in read_journal(Path("steer.jsonl"))]
    assert kinds[:3] == ["away", "tick", "back"]


def test_a_steerer_whose_watchdog_is_killed_releases_all_itself(slurm, dogs, capfd):
    """In the middle of a pause: a second is enough, not the next tick."""

    def kill():
        wait_for(lambda: dogs and (slurm.folder.parent / "steer.jsonl").exists(), "a tick")
        wait_for(lambda: slurm.released == JOBS, "releases of the tick")
        slurm.hold("20")
        os.kill(dogs[0].pid, signal.SIGKILL)
        killed.append(time.monotonic())

    killed = []
    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    assert steer("--tick", "60", "--ticks", "2") == 1
    assert time.monotonic() - killed[0] < 30  # half a tick
    thread.join()
    assert slurm.released == {*JOBS, "20"}
    assert "the watchdog has ended or has taken over; all held jobs are released, and later" in (
        capfd.readouterr().err
    )


def test_an_order_to_stop_to_a_watchdog_that_is_dead_is_carried_out_by_the_steerer(
    slurm, dogs, capfd
):
    slurm.fault("squeue", "slow")

    def kill():
        wait_for(lambda: dogs, "a watchdog")
        os.kill(dogs[0].pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    assert steer("--ticks", "1") == 1  # it is in its first squeue, and gives that up
    thread.join()
    assert slurm.released == JOBS
    assert not (slurm.folder.parent / "steer.jsonl").read_text()


def test_an_error_of_our_own_has_the_watchdog_stand_in(slurm, dogs, capfd, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tune_jobs.site.steering.tick_entry", fail)
    assert steer("--tick", "0.2", "--watchdog", "60") == 1
    wait_for(lambda: slurm.released == JOBS, "releases")
    slurm.hold("20")
    wait_for(lambda: "20" in slurm.released, "a later release")
    assert dogs[0].is_alive


def test_times_that_do_not_fit_together_are_refused(slurm, capfd):
    assert steer("--tick", "300") == 2
    assert "--watchdog must be longer than --tick" in capfd.readouterr().err


@pytest.mark.parametrize("watchdog_s", [2, 12, 60, 300, 3600])
def test_a_tick_whose_commands_are_just_in_time_is_completed_before_the_steerer_lets_go(watchdog_s):
    timing = safety.Timing.of(watchdog_s, 0.4)
    tick_s = 0.4 + timing.squeue_s + safety.CALLS_IN_TICK * timing.command_s
    assert tick_s <= timing.let_go_s + 1e-9
    assert timing.let_go_s + timing.squeue_s == watchdog_s


def test_by_default_a_site_may_take_a_minute_to_list_its_queue():
    timing = safety.Timing.of(300, 10)
    assert (timing.squeue_s, timing.command_s > 15) == (60, True)


def test_slurm_s_commands_get_the_times_that_were_derived(slurm, dogs, monkeypatch):
    """Not the limit of the watchdog, which several slow commands would exceed."""
    limits = {}

    def call(program, *arguments, timeout_s, **options):
        limits.setdefault(program, set()).add(timeout_s)
        return slow_call(program, *arguments, timeout_s=timeout_s, **options)

    slow_call = slurm_module.call
    monkeypatch.setattr(slurm_module, "call", call)
    assert steer("--ticks", "1", "--tick", "1", "--watchdog", "109") == 0
    assert limits == {"squeue": {27.0}, "sinfo": {6.0}, "scontrol": {6.0}}
