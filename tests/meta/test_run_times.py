"""Run times to be learned: what is known of a job, and networks that learn from it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.core.jobs import JobSet
from meta.run_times import learning
from meta.run_times.known import BINS, CENTERS, EDGES, GROUPS, Known, known_of
from meta.run_times.learning import Meta, probabilities, train_jointly
from meta.run_times.network import loss_of

EVERYBODY = len(GROUPS) - 1
NOBODY_KNOWN = 3  # facts of a job before those of groups


def jobs_of(seed: int, num_jobs: int = 400, users: int = 5) -> tuple[JobSet, np.ndarray]:
    """Jobs whose users each take a share of what they ask for, and when they finish."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, num_jobs)
    arrival = np.sort(rng.integers(0, 40_000, num_jobs))
    limit = rng.choice([600, 3600, 7200], num_jobs)
    share = np.exp(-3.0 * rng.random(users))[user] * np.exp(0.1 * rng.standard_normal(num_jobs))
    run = np.clip(limit * share, 1, limit).astype(np.int64)
    jobset = JobSet.of(
        arrival,
        run,
        rng.integers(1, 9, (num_jobs, 1)),
        attributes={"estimate": limit, "user": user},
    )
    return jobset, arrival + run + rng.integers(0, 3000, num_jobs)


@given(seed=st.integers(0, 50), cut=st.integers(0, 59))
def test_what_has_not_ended_is_not_known(seed: int, cut: int) -> None:
    jobset, finish = jobs_of(seed, 60)
    now = int(jobset.arrival[cut])
    later = finish > now
    changed = replace(
        jobset, duration=np.where(later, jobset.duration // 2 + 1, jobset.duration).astype(np.int32)
    )
    put_off = np.where(later, finish + 7, finish)
    before, after = known_of(jobset, finish, 8), known_of(changed, put_off, 8)
    same = jobset.arrival <= now
    assert np.array_equal(before.facts[same], after.facts[same])
    assert np.array_equal(before.shares[same], after.shares[same])


def test_shares_are_of_the_jobs_that_ended_and_later_ones_count_more() -> None:
    limit, took = 1000, [1000, 1000, 100, 1000]
    arrival = np.array([0, 10, 20, 5000])
    finish = np.array([1000, 1500, 2000, 9000])
    jobset = JobSet.of(
        arrival,
        took,
        np.ones((4, 1)),
        attributes={"estimate": np.full(4, limit), "user": [1, 1, 1, 1]},
    )
    known = known_of(jobset, finish, 4)
    assert not known.shares[:3].any()
    tenth = int(np.searchsorted(EDGES, np.log(0.1), side="right"))
    expected = np.zeros(BINS)
    expected[[tenth, -1]] = 1 / 3, 2 / 3
    assert known.shares[3, EVERYBODY] == pytest.approx(expected)
    assert known.facts[3, NOBODY_KNOWN] == pytest.approx(np.log1p(3) / 5)
    assert known.facts[3, NOBODY_KNOWN + 1] == pytest.approx(np.log1p(5000 - 2000) / 10)
    assert known.bin.tolist() == [BINS - 1, BINS - 1, tenth, BINS - 1]


def losses(share: np.ndarray, known: Known) -> float:
    return float(-np.log(share[np.arange(known.bin.size), known.bin]).mean())


def test_a_joint_network_foresees_users_it_has_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "_STEPS", 120)
    sites = [known_of(*jobs_of(seed), 8) for seed in range(3)]
    new = known_of(*jobs_of(9), 8).rows(slice(200, None))
    network = train_jointly(sites, 0)
    share = probabilities(network, new)
    assert share.sum(axis=1) == pytest.approx(1)
    everybody = 0.999 * new.shares[:, EVERYBODY] + 0.001 / BINS
    assert losses(share, new) < losses(everybody, new) - 0.3
    again = probabilities(train_jointly(sites, 0), new)
    assert np.array_equal(share, again)


def test_meta_training_makes_few_steps_worth_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "_STEPS", 60)
    monkeypatch.setattr(learning, "_MAML_STEPS", 25)
    monkeypatch.setattr(learning, "SUPPORT", 100)
    sites = [known_of(*jobs_of(seed), 8) for seed in range(3)]
    new = known_of(*jobs_of(9), 8)
    support, query = new.rows(slice(100, 200)), new.rows(slice(200, 400))
    meta = Meta(train_jointly(sites, 0))
    at_first = loss_of(meta.network, meta.adapted(support), query).item()
    meta.train(sites, 0)
    later = loss_of(meta.network, meta.adapted(support), query).item()
    own = dict(meta.network.named_parameters())
    assert later < at_first
    adapted = loss_of(meta.network, meta.adapted(support), support)
    assert adapted.item() < loss_of(meta.network, own, support).item()


def test_bins_lie_around_their_centers() -> None:
    assert np.array_equal(np.searchsorted(EDGES, CENTERS, side="right"), np.arange(BINS))
