"""The soak: a process that grows is found, one that does not is let be."""

import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster_env.core.errors import Failure, InputError
from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.benchmarks import counting, soak_report
from tune_jobs.benchmarks.growth import LIMITS, Growth, growths
from tune_jobs.benchmarks.processes import TOTAL, ProcessSampler, Reading, role_of
from tune_jobs.soak import _draw, command

PROGRAM = """
import sys, time
kept = []
while True:
    time.sleep(.05)
    if sys.argv[1] == "leaky":
        kept.append((bytearray(2**18), open("/dev/null"), [[] for _ in range(50)]))
"""
PARENT = """
import subprocess, sys
for kind in ("leaky", "steady"):
    subprocess.Popen([sys.executable, "-c", sys.argv[1], kind])
sys.stdin.read()
"""


def reading(minutes: float, process: str = "driver 1", **values: float) -> Reading:
    steady = {
        "heap_mib": 100,
        "uss_mib": 110,
        "rss_mib": 150,
        "descriptors": 9,
        "threads": 3,
    }
    return Reading(minutes, process, **{**steady, "blocks": 20000, **values})


def slopes(found: list[Growth]) -> dict[tuple[str, str], float]:
    return {(each.process, each.quantity): each.slope for each in found}


class TestGrowth:
    def test_the_slope_of_a_leak_is_found_after_the_warm_up(self):
        """A GiB comes in the warm-up, then two MiB a minute."""
        rows = [reading(m, heap_mib=100 * min(m, 10) + 2 * max(m - 10, 0)) for m in range(31)]
        (leak,) = [each for each in growths(rows, 10.0) if each.quantity == "heap_mib"]
        assert leak.slope == pytest.approx(2.0)
        assert (leak.first, leak.last) == (1001.0, 1039.0)
        assert leak.is_too_fast

    def test_processes_that_each_grow_a_little_are_a_leak_together(self):
        for gain, too_fast in ((0.2, False), (0.4, True)):
            rows = [
                reading(m, name, heap_mib=100 + share * gain * m)
                for m in range(31)
                for name, share in (("runner 1", 1), ("runner 2", 1), ("driver 1", 1), (TOTAL, 3))
            ]
            found = [each for each in growths(rows, 10.0) if each.is_too_fast]
            assert [each.process for each in found] == [TOTAL] * too_fast
            assert all(each.limit == 2 * LIMITS["heap_mib"] for each in found)

    def test_an_odd_reading_is_no_leak(self):
        rows = [reading(m, heap_mib=100 + 50 * (m in (13, 29, 30))) for m in range(31)]
        assert slopes(growths(rows, 10.0))["driver 1", "heap_mib"] == 0.0

    def test_what_stays_is_let_be(self):
        found = growths([reading(m) for m in range(31)], 10.0)
        assert {each.quantity for each in found} == set(LIMITS)
        assert not any(each.is_too_fast for each in found)

    @pytest.mark.parametrize("minutes", [range(12, 31), range(25)], ids=["late", "gone"])
    def test_a_process_that_was_not_there_all_the_time_is_not_judged(self, minutes):
        rows = [reading(m, "idle worker 1", heap_mib=9 * m) for m in minutes]
        rows += [reading(m) for m in range(31)]
        assert {each.process for each in growths(rows, 10.0)} == {"driver 1"}

    def test_what_is_no_python_has_no_blocks(self):
        rows = [reading(m, "raylet 1", blocks=math.nan) for m in range(31)]
        assert ("raylet 1", "blocks") not in slopes(growths(rows, 10.0))


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
def test_counting_does_not_disturb_what_is_counted(tmp_path):
    """Tuples that are being built while another thread counts; gc.get_objects would break them."""
    shutil.copyfile(counting.__file__, tmp_path / "sitecustomize.py")
    building = """
import time
kept = [[] for _ in range(1_000_000)]  # a list of all takes longer than a turn
end = time.monotonic() + 2
while time.monotonic() < end:
    tuple(i for i in range(1000))
"""
    done = subprocess.run(
        [sys.executable, "-c", building],
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            counting.FOLDER: str(tmp_path),
            counting.EVERY: "0.001",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert any(path.name.isdigit() for path in tmp_path.iterdir())


@pytest.mark.integration
def test_a_leaking_process_is_found_and_its_neighbor_is_not(tmp_path):
    """The machinery at work: two real processes, read for some seconds."""
    code, counts = tmp_path / "path", tmp_path / "counts"
    code.mkdir()
    counts.mkdir()
    shutil.copyfile(counting.__file__, code / "sitecustomize.py")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, PROGRAM],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": str(code),
            counting.FOLDER: str(counts),
            counting.EVERY: "0.2",
        },
    )
    sampler, rows = ProcessSampler(parent.pid, counts), []
    try:
        wait_for(lambda: len(list(counts.glob("*[0-9]"))) >= 3, "counts of all three processes")
        for _ in range(20):
            rows += sampler.read()
            time.sleep(0.25)
    finally:
        for child in sampler._root.children():
            child.kill()
        parent.kill()
        parent.wait()
    found = growths(rows, rows[0].minutes)
    leaks = {each.process for each in found if each.is_too_fast and each.quantity == "heap_mib"}
    assert leaks == {"other 1", "total"}
    grown = slopes(found)
    assert grown["other 1", "descriptors"] > 60  # 20 a second on a quiet machine
    assert grown["other 1", "blocks"] > 3000
    assert grown["other 2", "descriptors"] == 0.0
    assert grown["total", "heap_mib"] == pytest.approx(grown["other 1", "heap_mib"], rel=0.2)


class TestReport:
    @pytest.fixture
    def leaky(self, monkeypatch):
        rows = [
            reading(m / 2, process, heap_mib=100 + gain * m)
            for m in range(61)
            for process, gain in (("driver 1", 1.0), ("runner 1", 0.0))
        ]

        def made_up(out: Path, *_: object) -> list[Reading]:
            from dataclasses import asdict

            from tune_jobs.terminal.tables import write_table

            write_table(out / "readings.csv", [asdict(row) for row in rows])
            return rows

        monkeypatch.setattr(soak_report, "soak", made_up)

    def test_it_fails_and_names_what_grows(self, tmp_path, leaky, capsys):
        out = tmp_path / "soak"
        with pytest.raises(Failure, match=r"^grows too fast: heap_mib of driver 1 by 2\.00 a min"):
            soak_report.report_soak(30.0, 5.0, "deeprm-ppo", 2, out, _draw)
        assert {path.name for path in out.iterdir()} == {"readings.csv", "growth.csv", "soak.png"}
        (shown,) = [line for line in capsys.readouterr().out.splitlines() if "driver 1" in line]
        assert shown.split() == ["driver", "1", "+2.00", "+0.00", "+0.00", "+0.00"]

    def test_a_folder_that_exists_is_left_alone(self, tmp_path, leaky):
        with pytest.raises(InputError, match="exists already"):
            soak_report.report_soak(30.0, 5.0, "deeprm-ppo", 2, tmp_path, _draw)
        assert not list(tmp_path.iterdir())

    def test_what_cannot_be_is_refused(self):
        done = CliRunner().invoke(command, ["--minutes", "0"])
        assert done.exit_code == 2


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_half_a_minute_of_training_is_read(tmp_path):
    """The command as `make soak` calls it; what comes out of so short a time is not judged."""
    words = ["--minutes", "0.5", "--every", "2", "--out", str(tmp_path / "soak")]
    done = subprocess.run(
        [sys.executable, "-m", "tune_jobs.soak", *words, "--preset", "deeprm-smoke"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    for process in ("driver 1", "runner 1", "runner 2", "raylet 1", "mlflow 1", "total"):
        assert f"\n{process} " in done.stdout
    assert (tmp_path / "soak" / "soak.png").stat().st_size > 10_000
