"""Users and groups behind hashes: no name is left, and no number changes."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from cluster_env.workloads.formats import read_log
from cluster_env.workloads.hashing import KEY, hashed
from cluster_env.worlds.hpc.workloads import HPCLog

HEAD = "arrival,duration,processors,user,group,queue\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    users = ("ada", "bob", "", "ada", "eve")
    path.write_text(HEAD + "".join(f"{k},60,1,{user},bio,main\n" for k, user in enumerate(users)))
    return path


def test_names_are_gone_and_equal_where_they_were_equal(log: Path) -> None:
    jobs = hashed(read_log(log))
    users = jobs.names["user"][jobs.ids["user"]].tolist()
    assert users[0] == users[3]
    assert users[2] == ""  # nobody knows who it was
    assert len(set(users)) == 4
    assert all(name.startswith("user-") for name in users if name)
    assert jobs.names["group"][0].startswith("group-")
    assert jobs.names["queue"].tolist() == ["main"]


def test_a_key_makes_hashes_come_again_and_without_it_nobody_can_try_names(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names() -> list[str]:
        return hashed(read_log(log)).names["user"].tolist()

    monkeypatch.delenv(KEY, raising=False)
    drawn = names()
    assert drawn == names()  # within a process
    monkeypatch.setenv(KEY, "one")
    first = names()
    monkeypatch.setenv(KEY, "two")
    assert len({*drawn, *first, *names()}) == 3 * 3 + 1
    monkeypatch.setenv(KEY, "one")
    assert names() == first


def test_a_workload_hashes_on_request_and_its_jobs_stay_the_same(log: Path) -> None:
    plain, asked = (HPCLog(log, (4,), whole=True, hash_users=asked) for asked in (False, True))
    assert set(asked.recorded.names["user"]).isdisjoint({"ada", "bob", "eve"})
    first, second = (
        one.part(Split.TRAIN).sample(np.random.default_rng(0)) for one in (plain, asked)
    )
    np.testing.assert_array_equal(first.arrival, second.arrival)
    np.testing.assert_array_equal(first.attributes["user"], second.attributes["user"])
