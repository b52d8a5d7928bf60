"""The watchdog as a process, beside programs that stand for Slurm's."""

import subprocess
import sys
import time

import pytest

from tests.waiting import PATIENCE_S, wait_for
from tune_jobs import cli
from tune_jobs.site.controller import Forbidden, Refused, SiteAway, call, change, held_jobs
from tune_jobs.site.watchdog import Watchdog, release_all

SQUEUE = """#!/bin/sh
test -e {folder}/released || printf '7 JobHeldUser\\n8_3 JobHeldUser\\n9 JobHeldAdmin\\n'
printf '10 Resources\\n11;x JobHeldUser\\n'
"""
SCONTROL = """#!/bin/sh
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


def test_all_that_is_held_is_released_when_the_steerer_dies(calls, tmp_path):
    lock = str(tmp_path / "lock")
    steerer = (
        "import os, sys; from tune_jobs.site.watchdog import Watchdog, release_all;"
        f"dog = Watchdog(600, ['main'], {lock!r}); dog.beat(); print(dog.pid, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    process = subprocess.run(
        [sys.executable, "-c", steerer], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.returncode == -9
    wait_for(lambda: calls.exists() and calls.read_text(), "a release")
    assert calls.read_text() == "release 7,8_3\n"
    subprocess.run(["kill", process.stdout.decode().strip()], check=True)  # it stood in until now


def test_a_steerer_that_hangs_loses_the_site(calls, tmp_path):
    dog = Watchdog(0.5, [], str(tmp_path / "lock"))
    try:
        with pytest.raises(RuntimeError, match=f"process {dog.pid} steers these jobs"):
            Watchdog(0.5, [], str(tmp_path / "lock"))
        wait_for(calls.exists, "a release")
        assert not dog.beat()
    finally:
        dog._process.terminate()
        dog._process.wait()


def test_a_watchdog_that_is_told_to_stop_releases_and_ends(calls, tmp_path):
    dog = Watchdog(600, [], str(tmp_path / "lock"))
    assert dog.beat()
    assert not calls.exists()
    assert dog.stop(PATIENCE_S)
    assert calls.read_text() == "release 7,8_3\n"


def test_release_all_says_what_it_waits_for(calls, tmp_path, capsys, monkeypatch):
    """The emergency brake: a controller that does not answer, then another fault, then it does."""
    squeue = tmp_path / "squeue"
    answers = squeue.read_text()
    monkeypatch.setattr("tune_jobs.site.watchdog.EVERY_S", 0.0)
    squeue.write_text(f"""#!/bin/sh
echo look >>{tmp_path}/looks
case $(wc -l <{tmp_path}/looks) in
  1|2) echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1;;
  3) echo 'Socket timed out' >&2; exit 1;;
esac
{answers}""")
    assert cli.run(cli.metasched, ["steer", "--release-all"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"metasched: waiting for Slurm, to release all held jobs: squeue failed: {problem}"
        for problem in (
            "slurm_load_jobs error: Unable to contact slurm controller",
            "Socket timed out",
        )
    ]
    assert calls.read_text() == "release 7,8_3\n"


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


def test_commands_get_numbers_of_jobs_and_nothing_else(calls):
    assert change("release", ["7", "8;reboot", "$(x)", "9_1"]) == 0
    assert calls.read_text() == "release 7,9_1\n"


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
    assert change("release", ["7"]) == 1
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexec sleep 600\n")
    begin = time.monotonic()
    with pytest.raises(SiteAway, match=r"within 0\.1 s"):
        change("release", ["7"], timeout_s=0.1)
    assert time.monotonic() - begin < PATIENCE_S
    with pytest.raises(SiteAway, match="cannot be called"):
        call("sinfo-that-is-not-there")
