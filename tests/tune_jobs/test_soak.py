"""The soak: a process that grows is found, one that does not is let be."""

import subprocess
import sys
import time

import pytest

from tests.conftest import REPOSITORY
from tests.soak import LIMITS, TOTAL, Sampler, main, report, role_of, slopes
from tests.waiting import wait_for

PROGRAM = """
import sys, time
kept = []
while True:
    time.sleep(.05)
    if sys.argv[1] == "leaky":
        kept.append((bytearray(2**18), open("/dev/null")))
"""
PARENT = """
import subprocess, sys
for kind in ("leaky", "steady"):
    subprocess.Popen([sys.executable, "-c", sys.argv[1], kind])
sys.stdin.read()
"""


def reading(minutes: float, process: str = "driver 1", **values: float) -> dict:
    steady = {"heap_mib": 100, "descriptors": 9, "threads": 3}
    return {"minutes": minutes, "process": process, **steady, **values}


def test_the_slope_of_a_leak_is_found_after_the_warm_up():
    """A GiB comes in the warm-up, then two MiB a minute."""
    rows = [reading(m, heap_mib=100 * min(m, 10) + 2 * max(m - 10, 0)) for m in range(31)]
    assert slopes(rows, 10.0)["driver 1", "heap_mib"] == pytest.approx(2.0)


def test_an_odd_reading_is_no_leak():
    rows = [reading(m, heap_mib=100 + 50 * (m in (13, 29, 30))) for m in range(31)]
    assert slopes(rows, 10.0) == {("driver 1", quantity): 0.0 for quantity in LIMITS}


@pytest.mark.parametrize("minutes", [range(12, 31), range(25)], ids=["late", "gone"])
def test_a_process_that_was_not_there_all_the_time_is_not_judged(minutes):
    rows = [reading(m, "idle worker 1", heap_mib=9 * m) for m in minutes]
    rows += [reading(m) for m in range(31)]
    assert {process for process, _ in slopes(rows, 10.0)} == {"driver 1"}


@pytest.mark.parametrize(("gain", "too_fast"), [(0.2, False), (0.4, True)])
def test_processes_that_each_grow_a_little_are_a_leak_together(gain, too_fast, tmp_path, capsys):
    rows = [
        reading(m, name, heap_mib=100 + share * gain * m)
        for m in range(31)
        for name, share in (("runner 1", 1), ("runner 2", 1), ("driver 1", 1), (TOTAL, 3))
    ]
    assert report(rows, 10.0, tmp_path) == too_fast
    shown = capsys.readouterr()
    assert f"driver 1 gains a minute: +{gain:.2f} heap_mib, +0.00 descriptors" in shown.out
    assert shown.err == (
        "grows too fast: heap_mib of total by 1.20 a minute (limit 1)\n" if too_fast else ""
    )
    assert (tmp_path / "growth.csv").read_text().startswith("process,quantity,slope,limit\n")


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (["ray::UnitEnvRunner.sample"], "runner"),
        (["ray::UnitEnvRunner"], "runner"),
        (["/x/raylet/raylet", "--gcs-address=1"], "raylet"),
        (["python", "-m", "tune_jobs.train", "deeprm-ppo"], "driver"),
        (["python", "-m", "uvicorn", "mlflow.server.fastapi_app:app"], "mlflow"),
        (["sleep", "1"], "other"),
    ],
)
def test_a_process_is_known_by_its_command(words, role):
    assert role_of(words) == role


@pytest.mark.integration
def test_a_leaking_process_is_found_and_its_neighbor_is_not():
    """The machinery at work: two real processes, read for some seconds."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, PROGRAM],
        stdin=subprocess.PIPE,
    )
    sampler, rows = Sampler(parent.pid), []
    try:
        wait_for(lambda: len(sampler.read()) >= 3, "both processes")
        time.sleep(1)
        for _ in range(20):
            rows += sampler.read()
            time.sleep(0.25)
    finally:
        for child in sampler._root.children():
            child.kill()
        parent.kill()
        parent.wait()
    gains = slopes(rows, rows[0]["minutes"])
    leaks = {
        name for (name, quantity), gain in gains.items() if quantity == "heap_mib" and gain > 1
    }
    assert leaks == {"other 1", TOTAL}
    assert gains["other 1", "descriptors"] > 60  # 20 a second on a quiet machine
    assert gains["other 2", "descriptors"] == 0.0
    assert gains[TOTAL, "heap_mib"] == pytest.approx(gains["other 1", "heap_mib"], rel=0.2)


@pytest.mark.parametrize(
    ("words", "message"), [(["--minutes", "0"], "must be above"), (["--out", "."], "exists")]
)
def test_what_cannot_be_is_refused(words, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_half_a_minute_of_training_is_read(tmp_path):
    """What comes out of so short a time is not judged."""
    words = ["--minutes", "0.5", "--every", "2", "--out", str(tmp_path / "soak")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *words, "--preset", "deeprm-smoke"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    for process in ("driver 1", "runner 1", "runner 2", "raylet 1", "mlflow 1", "total"):
        assert f"{process} gains a minute" in done.stdout
    assert (tmp_path / "soak" / "readings.csv").read_text().startswith("minutes,process,heap_mib")
