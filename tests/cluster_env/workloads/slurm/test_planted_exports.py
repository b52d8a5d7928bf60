"""A hundred made-up exports: every row is a job with its numbers, or counted with a reason."""

from collections import Counter
from pathlib import Path

import pytest

from cluster_env.workloads.formats import read_log
from tests.cluster_env.workloads.slurm.planted_exports import PLANTS, Truth, write_export

COUNT = 100


@pytest.mark.parametrize("seed", range(COUNT))
def test_every_row_is_a_job_or_counted_with_its_reason(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    made = write_export(path, seed)
    zone = made.style["times"] if "/" in made.style["times"] else ""
    jobs = read_log(path, time_zone=zone)
    assert {one.reason: one.count for one in jobs.dropped} == dict(made.dropped)
    assert jobs.rows == jobs.num_jobs + sum(made.dropped.values())
    assert jobs.rows == len([line for line in made.lines[1:] if line])
    longest = max(job.limit for job in made.jobs)
    expected = {
        job.line: job if job.limit else Truth(**{**vars(job), "limit": max(longest, job.run)})
        for job in made.jobs
    }
    assert jobs.wait is not None
    assert jobs.resources == ("processors", "memory", "gpus")
    for k, line in enumerate(jobs.line.tolist()):
        found = [jobs.submit[k], jobs.wait[k], jobs.run[k], jobs.estimate[k], *jobs.demand[k]]
        user = jobs.names["user"][jobs.ids["user"][k]]
        assert Truth(line, *map(int, found), str(user)) == expected.pop(line)
    assert not expected


def test_the_hundred_exports_plant_every_pitfall_in_every_style(tmp_path: Path) -> None:
    planted: Counter[str] = Counter()
    styles: dict[str, set[str]] = {}
    for seed in range(COUNT):
        made = write_export(tmp_path / "export.txt", seed)
        planted += made.planted
        for name, value in made.style.items():
            styles.setdefault(name, set()).add(value)
    assert set(planted) == set(PLANTS)
    assert min(planted.values()) >= COUNT
    assert {name: len(values) for name, values in styles.items()} == {
        **{"delimiter": 4, "times": 4, "limits": 2, "elapsed": 3, "memory": 4, "names": 2},
        **{"gpus": 3, "allocated": 2, "closed": 2},
    }
