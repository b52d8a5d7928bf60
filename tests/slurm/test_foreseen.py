"""Start times at a real Slurm: arrays, exclusive jobs and named nodes start as foreseen."""

from pathlib import Path

import numpy as np
import pytest

from rllib_configs.snapshot import RUNNING
from tests.slurm.private_slurm import PrivateSlurm, missing_programs
from tests.waiting import wait_for
from tune_jobs.site.slurm import SlurmBackend
from tune_jobs.site.starting import foresee_by

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]


def write_past(path: Path) -> None:
    """Jobs that took a tenth of their limits, or all of them."""
    rng = np.random.default_rng(0)
    rows = [
        f"{300 * k},{int(60 * rng.uniform(0.1, 1))},60,{rng.choice([1, 3, 64])},u{k % 5}"
        for k in range(200)
    ]
    path.write_text("\n".join(["arrival,duration,estimate,processors,user", *rows, ""]))


def test_true_starts_lie_in_the_intervals_of_90_percent_or_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := missing_programs():
        pytest.skip(f"no {', '.join(missing)} on PATH; tests/slurm/README.md says how to get them")
    write_past(tmp_path / "past.csv")
    foresee = foresee_by("fcfs:easy", tmp_path / "past.csv", {}, 0, num_instants=0, num_futures=100)
    with PrivateSlurm() as slurm:
        for name, value in slurm.environment.items():
            monkeypatch.setenv(name, value)
        first = slurm.submit("sleep 30", "--exclusive", "-N4", "-t1")
        slurm.wait_for(lambda: slurm.states()[first] == "RUNNING", "the first job")
        slurm.submit("sleep 15", "--array=1-4%1", "-n1", "-t1")
        for seconds in (20, 15):
            slurm.submit(f"sleep {seconds}", "--exclusive", "-N3", "-t1")
        slurm.submit("sleep 20", "-wn1", "-n1", "-t1")
        near = slurm.submit("sleep 5", "-N2", "--contiguous", "-t1")
        backend = SlurmBackend()
        foreseen = {one.job: one for one in foresee(backend.read())}
        assert len(foreseen) == 8
        starts: dict[str, int] = {}

        def all_started() -> bool:
            there = backend.read().in_state(RUNNING)
            starts.update({job.job: job.start for job in there if job.job not in starts})
            return foreseen.keys() <= starts.keys()

        wait_for(all_started, "all starts", 300)
    for job, one in foreseen.items():
        assert one.at is not None
        assert one.at[0] <= starts[job] <= one.at[4] or one.not_simulated
    assert foreseen[str(near)].not_simulated == ("contiguous nodes",)
    medians = [foreseen[f"{first + 1}_{k}"].at[2] for k in (1, 2, 3, 4)]
    assert medians == sorted(set(medians))
