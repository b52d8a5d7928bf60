"""The simulator starts jobs when a real Slurm did, with partitions, limits and reservations."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import REPOSITORY
from tests.slurm.limited import INTERVAL_S, NUM_JOBS, record
from tests.slurm.private_accounts import skip_without_accounts
from tests.slurm.replayed import replay

RECORDED = REPOSITORY / "tests" / "slurm" / "recorded"


def test_recorded_jobs_start_as_at_slurm_within_a_scheduling_interval() -> None:
    found = replay(RECORDED)
    assert found.late.size == NUM_JOBS
    assert (found.waited > INTERVAL_S).sum() > 40
    assert found.share_within(INTERVAL_S) >= 0.9
    assert found.share_of_waiting(INTERVAL_S) > 0.7


def test_without_what_the_site_refuses_the_starts_are_others(tmp_path: Path) -> None:
    """Limits, partitions and the reservation are what makes jobs wait here."""
    for file in RECORDED.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    rows = (tmp_path / "qos.txt").read_text()
    (tmp_path / "qos.txt").write_text(rows.replace("cpu=256", "").replace("cpu=128", ""))
    known, other = replay(RECORDED), replay(tmp_path)
    waiting = known.waited > INTERVAL_S
    assert other.share_of_waiting(INTERVAL_S) < known.share_of_waiting(INTERVAL_S)
    assert np.abs(other.late[waiting]).mean() > 2 * np.abs(known.late[waiting]).mean()


@pytest.mark.slurm
@pytest.mark.timeout(600)
def test_a_private_slurm_with_limits_starts_jobs_as_the_simulator_does(tmp_path: Path) -> None:
    skip_without_accounts()
    record(tmp_path, seed=1, until_s=100)
    found = replay(tmp_path)
    assert found.late.size > 100
    assert found.share_within(INTERVAL_S) >= 0.85  # also on busy cores
