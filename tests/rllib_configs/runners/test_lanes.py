"""Each unit is done once, neighbors mostly by one runner, and nobody waits while work is left."""

from rllib_configs.runners.lanes import Lanes


def even(count: int, runners: list[int]) -> Lanes:
    return Lanes.even(range(count), dict.fromkeys(runners, 1))


def drain(lanes: Lanes, runners: list[int]) -> dict[int, list[int]]:
    """Runners take in turns until nothing is left."""
    found: dict[int, list[int]] = {runner: [] for runner in runners}
    while taken := [(runner, lanes.take(runner)) for runner in runners]:
        if not any(places for _, places in taken):
            return found
        for runner, places in taken:
            found[runner] += places
    return found


def test_equal_runners_do_neighbors() -> None:
    assert drain(even(8, [3, 5]), [3, 5]) == {3: [0, 1, 2, 3], 5: [4, 5, 6, 7]}


def test_a_fast_runner_takes_from_the_back_of_a_slow_one() -> None:
    lanes = even(8, [1, 2])
    assert lanes.take(1) == (0, 1)
    assert [lanes.take(2) for _ in range(3)] == [(4, 5), (6,), (7,)]
    assert [lanes.take(2) for _ in range(3)] == [(3,), (2,), ()]
    assert lanes.take(1) == ()


def test_more_runners_than_units() -> None:
    lanes = even(2, [1, 2, 3])
    found = sorted(place for runner in (1, 2, 3, 1, 2, 3) for place in lanes.take(runner))
    assert found == [0, 1]


def test_what_a_lost_runner_had_goes_to_those_left() -> None:
    lanes = even(8, [1, 2, 3])  # 0 1 | 2 3 4 | 5 6 7
    taken = lanes.take(2)
    lanes.give_back(taken, 2, [1, 3])
    found = drain(lanes, [1, 3])
    assert sorted(found[1] + found[3]) == list(range(8))
    lanes = even(4, [1])
    lanes.give_back(lanes.take(1), 1, [])
    assert lanes.rest() == (0, 1, 2, 3)
    assert lanes.rest() == ()


def test_fixed_lanes_stay_with_their_runners() -> None:
    lanes = Lanes({1: [0, 2], 2: [1]}, fixed=True)
    assert lanes.take(3) == ()
    assert lanes.take(1) == (0, 2)
    assert lanes.take(1) == ()
    lanes.give_back((0, 2), 1, [2])
    assert lanes.take(2) == (1, 0, 2)


def test_those_who_are_wide_get_more_and_take_it_at_once() -> None:
    lanes = Lanes.even(range(1, 9), {-1: 3, 7: 1})
    assert lanes.take(-1, 12) == (1, 2, 3, 4, 5, 6)
    assert lanes.take(7) == (7,)
    assert lanes.take(-1, 12) == (8,)
    lanes = Lanes.even(range(40), {-1: 4, -2: 4})
    assert len(lanes.take(-1, 4)) == 10
    assert len(lanes.take(-1, 8)) == 8
    assert lanes.take(-1) == (18,)
    assert lanes.take(-1) == (19,)
    assert lanes.take(-1, 2) == tuple(range(30, 40))
    assert lanes.take(-1, 8) == tuple(range(22, 30))


def test_without_runners_all_is_left() -> None:
    assert Lanes.even([3, 5], {}).rest() == (3, 5)
