"""Mixtures of workloads: what is drawn, what stays in reach, and what is refused."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.workloads import BimodalWorkload, Ranges
from tests.cluster_env.worlds.deeprm.rates import at_rate

WIDE = Ranges(load=(0.1, 1.84), window=(50, 200, 500), small_share=(0.6, 0.95))


def drawn(ranges: Ranges, count: int) -> list[BimodalWorkload]:
    base = BimodalWorkload(load=0.7)
    return [ranges.draw(base, generator(0, Purpose.JOBSET, 0, k)) for k in range(count)]


def test_every_draw_lies_in_its_range() -> None:
    mixes = drawn(WIDE, 600)
    loads = np.array([mix.load for mix in mixes])
    shares = np.array([mix.small_share for mix in mixes])
    assert 0.1 <= loads.min() < 0.15
    assert 1.7 < loads.max() <= 1.84
    assert 0.6 <= shares.min() < 0.61
    assert 0.94 < shares.max() <= 0.95
    windows, counts = np.unique([mix.window for mix in mixes], return_counts=True)
    assert windows.tolist() == [50, 200, 500]
    assert counts.min() > 150
    assert abs(np.corrcoef(loads, [mix.window for mix in mixes])[0, 1]) < 0.15


def test_a_load_out_of_reach_is_a_job_in_every_step() -> None:
    mixes = drawn(WIDE, 600)
    busiest = [mix for mix in mixes if mix.load == mix.max_load]
    assert {mix.arrival_rate for mix in busiest} == {1.0}
    assert min(mix.small_share for mix in busiest) > 0.8  # 0.8 alone reaches 184.5 %
    jobset = at_rate(1.0, window=80).sample(np.random.default_rng(0))
    assert jobset.num_jobs == 80


def test_windows_are_chosen_by_weight() -> None:
    ranges = Ranges(window=(50, 500), window_weights=(9, 1))
    windows = [mix.window for mix in drawn(ranges, 500)]
    assert 0.06 < windows.count(500) / 500 < 0.14


def test_each_window_can_have_its_highest_load() -> None:
    ranges = Ranges(load=(0.1, 1.8), window=(50, 500), window_loads=(1.8, 0.9))
    mixes = drawn(ranges, 400)
    long = [mix.load for mix in mixes if mix.window == 500]
    short = [mix.load for mix in mixes if mix.window == 50]
    assert min(long) >= 0.1
    assert 0.85 < max(long) <= 0.9
    assert max(short) > 1.7


def test_what_has_no_range_stays_and_leaves_the_other_draws_alone() -> None:
    less = Ranges(load=(0.1, 1.0))
    more = Ranges(load=(0.1, 1.0), window=(50, 200))
    pairs = list(zip(drawn(less, 20), drawn(more, 20), strict=True))
    assert all(mix.load == other.load for mix, other in pairs)
    assert {(mix.window, mix.small_share) for mix, _ in pairs} == {(50, 0.8)}


def test_jobsets_are_those_of_the_drawn_workload_and_can_be_repeated() -> None:
    workload = BimodalWorkload(vary=WIDE)
    one, again = (sample_jobsets(workload, 3, Split.TRAIN, range(20)) for _ in range(2))
    for jobset, same in zip(one, again, strict=True):
        assert np.array_equal(jobset.demand, same.demand)
    assert {jobset.window for jobset in one} == {50, 200, 500}
    assert workload.longest_window == 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"load": (1.0, 0.5)}, "loads from 1 to 0.5 were given"),
        ({"load": (0.0, 0.5)}, "the lowest load, 0, is out of reach"),
        ({"load": (1.5, 1.8), "small_share": (0.6, 0.95)}, r"share of 0.95 .* up to 1\.1"),
        ({"small_share": (0.9, 0.8)}, "small shares from 0.9 to 0.8"),
        ({"small_share": (0.9, 1.8)}, r"small_share must lie in 0\.\.1"),
        ({"window": (50, 0)}, "at least 1 step"),
        ({"window": (50,), "window_weights": (1, 2)}, "2 weights were given for 1 windows"),
        ({"window": (50, 60), "window_weights": (1, 0)}, "must be above 0"),
        ({"window": (50, 60), "window_loads": (0.8,)}, "1 loads were given for 2 windows"),
        (
            {"load": (0.5, 1.0), "window": (50, 60), "window_loads": (0.8, 0.4)},
            "cannot be below the lowest load, 0.5",
        ),
    ],
)
def test_impossible_mixtures_are_refused_in_one_sentence(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        BimodalWorkload(vary=Ranges(**options))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_shortest_window_is_drawn_alone_with_the_load_that_belongs_to_it() -> None:
    vary = Ranges(load=(0.5, 1.5), window=(200, 50), window_weights=(1, 3), window_loads=(0.9, 1.2))
    workload = BimodalWorkload(vary=vary)
    short = workload.with_short_windows()
    assert short.vary == Ranges(load=(0.5, 1.5), window=(50,), window_loads=(1.2,))
    assert short.longest_window == 50
    same = BimodalWorkload(vary=Ranges(load=(0.5, 1.5)))
    assert same.with_short_windows() is same
