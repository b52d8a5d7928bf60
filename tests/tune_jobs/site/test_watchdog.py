"""The watchdog as a process, beside programs that stand for Slurm's."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from tests.waiting import PATIENCE_S, wait_for
from tune_jobs import cli
from tune_jobs.site import commands, locking
from tune_jobs.site.commands import Forbidden, Refused, SiteAway, call
from tune_jobs.site.controller import change, held_jobs
from tune_jobs.site.watchdog import Watchdog, release_all

SQUEUE = """#!/bin/sh
test -e {folder}/released || printf '7 main JobHeldUser\\n8_3 main,gpu JobHeldUser\\n'
printf '9 main JobHeldAdmin\\n10 gpu Resources\\n11;x main JobHeldUser\\n'
"""
SCONTROL = """#!/bin/sh
test "$1" = release || exit 0
echo "$*" >>{folder}/calls
touch {folder}/released
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """File with what scontrol was called with."""
    for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
        path = tmp_path / name
        path.write_text(text.format(folder=tmp_path))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "calls"


@pytest.fixture
def cluster(tmp_path):
    """The name of a cluster that nobody else locks."""
    yield f"test {os.getpid()} {tmp_path.name}"
    for lock in locking._folders()[0].glob(f"steer-test-{os.getpid()}-*.lock"):
        lock.unlink()  # of one that was killed


def test_all_that_is_held_is_released_when_the_steerer_dies(calls, cluster, tmp_path):
    """And later submissions, too: a broken pipe is no order to stop."""
    steerer = (
        "import os, sys; from tune_jobs.site.watchdog import Watchdog, release_all;"
        f"dog = Watchdog(600, ['main'], {cluster!r}); dog.beat(); print(dog.pid, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    process = subprocess.run(
        [sys.executable, "-c", steerer], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.returncode == -9
    wait_for(lambda: calls.exists() and calls.read_text(), "a release")
    assert calls.read_text() == "release 7,8_3\n"
    time.sleep(2.5)  # it looks each second, and finds that nothing is held
    (tmp_path / "released").unlink()  # as if more had been submitted
    wait_for(lambda: calls.read_text().count("release 7,8_3\n") == 2, "a later release", 30)
    subprocess.run(["kill", process.stdout.decode().strip()], check=True)  # it stood in until now


def test_a_steerer_that_hangs_loses_the_site(calls, cluster, monkeypatch):
    dog = Watchdog(0.5, [], cluster)
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")  # as a service and a login shell
        with pytest.raises(RuntimeError, match=f"process {dog.pid} steers these jobs"):
            Watchdog(0.5, [], cluster)
        wait_for(calls.exists, "a release")
        assert not dog.watches
        assert dog.is_alive
    finally:
        dog._process.terminate()
        dog._process.wait()


def test_a_watchdog_that_is_told_to_stop_releases_and_ends(calls, cluster):
    dog = Watchdog(600, [], cluster)
    dog.beat()
    assert dog.watches
    assert not calls.exists()
    assert dog.stop(PATIENCE_S) == 0
    assert calls.read_text() == "release 7,8_3\n"
    assert not dog.watches


def test_a_watchdog_that_was_killed_is_missed_at_once(calls, cluster):
    dog = Watchdog(600, [], cluster)
    dog._process.kill()
    dog._process.wait()
    assert not dog.watches
    assert dog.stop(PATIENCE_S) == -9


def test_a_watchdog_that_stands_in_survives_a_denial(calls, cluster, tmp_path, capfd):
    """An account whose rights come back, as when slurmdbd was away."""
    answers = (tmp_path / "scontrol").read_text()
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'Invalid user id' >&2\nexit 1\n")
    dog = Watchdog(0.1, [], cluster)
    try:
        said = []
        wait_for(lambda: said.append(capfd.readouterr().err) or "Invalid" in "".join(said), "word")
        (tmp_path / "scontrol").write_text(answers)
        wait_for(calls.exists, "a release", 30)
        assert dog.is_alive
    finally:
        dog._process.terminate()
        dog._process.wait()


def test_release_all_says_what_it_waits_for(calls, tmp_path, capsys, monkeypatch):
    """The emergency brake: a controller that does not answer, then another fault, then it does."""
    answers = {name: (tmp_path / name).read_text() for name in ("squeue", "scontrol")}
    monkeypatch.setattr("tune_jobs.site.watchdog.EVERY_S", 0.0)
    for name in answers:
        (tmp_path / name).write_text(f"""#!/bin/sh
case $(wc -l <{tmp_path}/looks) in
  1|2) echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1;;
  3) echo 'Socket timed out' >&2; exit 1;;
esac
{answers[name]}""")
    squeue = (tmp_path / "squeue").read_text()
    (tmp_path / "squeue").write_text(squeue.replace("case", f"echo >>{tmp_path}/looks\ncase", 1))
    assert cli.run(cli.metasched, ["steer", "--release-all"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        *(
            f"metasched: held jobs cannot be released yet: squeue failed: {problem}"
            for problem in (
                "slurm_load_jobs error: Unable to contact slurm controller",
                "Socket timed out",
            )
        ),
        "metasched: Slurm answers again",
    ]
    assert calls.read_text() == "release 7,8_3\n"


@pytest.mark.parametrize("refusal", ["echo 'Unexpected message received' >&2; exit 1", "true"])
def test_release_all_gives_up_where_nothing_is_released(
    refusal, calls, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("tune_jobs.site.watchdog.EVERY_S", 0.01)
    monkeypatch.setattr("tune_jobs.site.reporting.PATIENCE_S", 0.5)
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{refusal}\n")
    assert cli.run(cli.metasched, ["steer", "--release-all"]) == 1
    first, last = capsys.readouterr().err.splitlines()
    why = ": scontrol failed: Unexpected message received" if "exit" in refusal else ""
    assert first == f"metasched: held jobs cannot be released yet: 2 stay held{why}"
    assert last.endswith(f"not all held jobs could be released: 2 stay held{why}")


@pytest.mark.parametrize("missing", ["squeue", "scontrol"])
def test_release_all_is_refused_where_slurm_s_programs_are_not(
    missing, calls, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / missing).unlink()
    assert cli.run(cli.metasched, ["steer", "--release-all"]) == 2
    assert f"{missing} is not on PATH" in capsys.readouterr().err


def test_only_what_users_hold_is_named(calls):
    assert held_jobs(["main"]) == ["7", "8_3"]
    assert held_jobs(["gpu"]) == ["8_3"]


RECORDS = {
    "1": "JobState=PENDING Reason=JobHeldUser Dependency=(null) Partition=main Features=(null)",
    "2": "ArrayTaskId=0,2-3 JobState=PENDING Reason=JobHeldUser Dependency=(null) Partition=gpu",
    "3": "JobState=PENDING Reason=JobHeldAdmin Dependency=(null) Partition=main",
    "4": "JobState=COMPLETED Reason=None Dependency=(null) Partition=main",
    "5": "HetJobId=5 JobState=PENDING Reason=JobHeldUser Dependency=(null) Partition=main",
    "6": "JobName=x\nJobId=3 JobState=PENDING Reason=JobHeldUser y JobState=RUNNING Reason=None",
}


@pytest.mark.parametrize(
    "squeue", ["exit 1", "exec sleep 600", "echo '?'", "true", "exec yes '7|main|x'"]
)
def test_where_squeue_lists_nothing_scontrol_does(squeue, calls, tmp_path, monkeypatch):
    """As recorded of a Slurm 22.05; job 6 has a name that looks like a record of job 3."""
    monkeypatch.setattr(commands, "MOST_BYTES", 10_000_000)
    for job, record in RECORDS.items():
        (tmp_path / f"record{job}").write_text(f"JobId={job} {record}\n")
    (tmp_path / "record2").open("a").write("JobId=9 JobState=RUNNING Reason=None Partition=gpu\n")
    (tmp_path / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
    (tmp_path / "scontrol").write_text(
        f'#!/bin/sh\ncd {tmp_path}\ncase "$*" in\n'
        "  '-a -o show job') cat record*;;\n  '-a -o show job'*) cat record$5;;\nesac\n"
    )
    assert held_jobs([], squeue_timeout_s=2.0) == ["1", "2"]
    assert held_jobs(["gpu"], squeue_timeout_s=2.0) == ["2"]


def test_commands_get_numbers_of_jobs_and_nothing_else(calls):
    assert change("release", ["7", "8;reboot", "$(x)", "9_1"]) == []
    assert calls.read_text() == "release 7,9_1\n"


def test_a_program_prints_no_more_than_is_read(calls, tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/sh\nyes 'a queue without an end' & wait\n")
    with pytest.raises(SiteAway, match="squeue printed more than 64 MiB"):
        call("squeue")


def test_a_program_reads_more_than_a_pipe_holds(calls, tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec cat\n")
    text = "update JobId=7 Priority=1\n" * 100_000
    assert call("squeue", text=text) == text


def test_a_program_is_not_waited_for_when_all_is_to_end(calls, tmp_path):
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec sleep 600\n")
    begin = time.monotonic()
    with pytest.raises(SiteAway, match="was not waited for"):
        call("squeue", timeout_s=600, stopping=lambda: time.monotonic() > begin + 0.5)
    assert time.monotonic() - begin < PATIENCE_S


def test_an_account_without_a_home_locks_where_nobody_can_be_first(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "TEMPORARY", tmp_path)
    monkeypatch.setattr(locking, "NUM_NAMES", 5)
    monkeypatch.setattr(locking.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir="/none"))
    names = [tmp_path / f"metasched-{os.getuid()}-{number}" for number in range(5)]
    names[0].write_text("a stranger's")
    names[1].symlink_to(tmp_path)
    names[2].mkdir()
    names[2].chmod(0o777)
    assert locking.lock_cluster("lab").parent == names[3]
    names[0].unlink()  # he gives the name back
    with pytest.raises(locking.Locked, match=f"process {os.getpid()} steers these jobs"):
        locking.lock_cluster("lab")
    assert locking.lock_cluster("another").parent == names[3]


def test_where_others_have_all_names_there_is_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "TEMPORARY", tmp_path)
    monkeypatch.setattr(locking, "NUM_NAMES", 1)
    monkeypatch.setattr(locking.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir="/none"))
    (tmp_path / f"metasched-{os.getuid()}-0").write_text("")
    with pytest.raises(locking.Locked, match="others have taken all names"):
        locking.lock_cluster("lab")


def test_an_account_that_may_not_do_it_is_told_after_all_was_tried(calls, tmp_path, monkeypatch):
    (tmp_path / "scontrol").write_text(
        f"#!/bin/sh\necho $2 >>{calls}\ntest $2 = 8 || echo 'Invalid user id for job' >&2\nexit 1\n"
    )
    monkeypatch.setattr("tune_jobs.site.controller.AT_ONCE", 1)
    with pytest.raises(Forbidden, match="Invalid user id"):
        change("release", ["7", "8", "9"])
    assert calls.read_text() == "7\n8\n9\n"
    with pytest.raises(Forbidden):
        release_all([], stay=False)


def test_a_program_that_fails_hangs_or_is_missing_is_a_site_that_is_away(calls, tmp_path):
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'no\nsuch thing' >&2; exit 3\n")
    with pytest.raises(Refused, match="scontrol failed: such thing"):
        call("scontrol")
    assert change("release", ["7"]) == ["scontrol failed: such thing"]
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexec sleep 600\n")
    begin = time.monotonic()
    with pytest.raises(SiteAway, match=r"within 0\.1 s"):
        change("release", ["7"], timeout_s=0.1)
    assert time.monotonic() - begin < PATIENCE_S
    with pytest.raises(SiteAway, match="cannot be called"):
        call("sinfo-that-is-not-there")
