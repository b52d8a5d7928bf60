"""How near simulated waits come to recorded ones, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from tune_jobs.replaying import fidelity as near


def waits(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def calibration(
    recorded: NDArray[np.int64], gap_s: int = near.WEEK_S, **simulated: NDArray[np.int64]
) -> near.RecordedWaits:
    arrival = gap_s * np.arange(recorded.size)
    num_weeks = int(arrival[-1] // near.WEEK_S) + 1
    classes = {"all": np.ones(recorded.size, np.bool_)}
    weeks = [f"{k + 1}" for k in range(num_weeks)]
    return near.RecordedWaits(arrival, recorded, simulated, classes, weeks)


def test_the_numbers_of_four_jobs_by_hand() -> None:
    found = near.fidelity(waits(0, 1000, 2000, 9000), waits(600, 1000, 3000, 5000))
    assert found["recorded"] == 3000
    assert found["simulated"] == 2400
    assert found["difference"] == 800  # of 0, 600, 1000, 4000
    assert found["near"] == 0.5  # 600 s is near, 1000 of 2000 is not
    assert found["rank"] == 1
    # The median, 1500, is off by 1500, 500, 500 and 7500: 2500 in the mean, and these by 1400.
    assert found["gain"] == pytest.approx(1 - 1400 / 2500)


def test_ranks_are_spearmans_and_unknown_where_all_waits_are_equal() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, (2, 60))
    assert near.fidelity(first, second)["rank"] == pytest.approx(spearmanr(first, second)[0])
    found = near.fidelity(waits(5, 5, 5), waits(1, 2, 3))
    assert math.isnan(found["rank"])
    assert math.isnan(found["gain"])  # the median says it all


def test_the_ratio_has_an_interval_where_there_are_five_weeks() -> None:
    recorded = waits(100, 200, 300, 400, 500, 600)
    made = calibration(recorded, doubled=2 * recorded, other=recorded[::-1].copy())
    rows = {row["policy"]: row for row in near.in_all(made).rows}
    assert [rows["doubled"][name] for name in ("ratio", "ratio_low", "ratio_high")] == [2, 2, 2]
    assert rows["other"]["ratio"] == 1
    assert rows["other"]["ratio_low"] < 1 < rows["other"]["ratio_high"]
    short = near.in_all(calibration(recorded, gap_s=1000, doubled=2 * recorded)).rows[0]
    assert short["ratio"] == 2
    assert math.isnan(short["ratio_low"])


def test_the_nearest_comes_first() -> None:
    recorded = waits(100, 200, 300, 4000)
    made = calibration(recorded, far=9 * recorded, exact=recorded, half=recorded // 2)
    assert [row["policy"] for row in near.in_all(made).rows] == ["exact", "half", "far"]


def test_weeks_and_classes_hold_their_jobs() -> None:
    recorded = waits(10, 20, 30, 40)
    made = calibration(recorded, gap_s=near.WEEK_S // 2, same=recorded)
    weeks = near.by_week(made, "same").rows
    assert [(row["week"], row["jobs"], row["recorded"]) for row in weeks] == [
        ("1", 2, 15),
        ("2", 2, 35),
    ]
    classes = near.classes_of(waits(0, 2, 2), waits(3600, 3601, 99_999), ["a", "b", ""])
    assert {name: members.tolist() for name, members in classes.items()} == {
        "narrow": [True, False, False],
        "wide": [False, True, True],
        "asks for up to 1 h": [True, False, False],
        "asks for 1 to 12 h": [False, True, False],
        "asks for more than 12 h": [False, False, True],
        "queue (none)": [False, False, True],
        "queue a": [True, False, False],
        "queue b": [False, True, False],
    }
    assert not any("queue" in name for name in near.classes_of(waits(0), waits(9), None))


def test_rules_that_are_no_nearer_than_the_median_are_not_ranked() -> None:
    recorded = waits(100, 200, 300, 400, 500, 600)
    made = calibration(recorded, far=recorded * 0 + 355, near=recorded * 0 + 350)
    sheet = near.in_all(made)
    assert [row["policy"] for row in sheet.rows] == ["far", "near"]
    assert "all gains are about 0" in sheet.note


@pytest.mark.parametrize(
    ("simulated", "answer", "words"),
    [
        ((0, 1000, 2000, 9000), "good", "is predicted 100% better"),
        ((0, 0, 2000, 5000), "partly", "trust the ranking of policies"),
        ((0, 0, 0, 0), "not", "something that is not simulated determines"),
        ((9000, 1900, 1000, 100), "not", "the means agree, but"),
    ],
)
def test_the_verdict_says_whether_a_log_can_be_replayed(
    simulated: tuple[int, ...], answer: str, words: str
) -> None:
    row = near.in_all(calibration(waits(0, 1000, 2000, 9000), rule=waits(*simulated))).rows[0]
    found, why = near.verdict(row, 1)
    assert found == answer
    assert words in why
    assert "under rule, the one policy" in why


def test_where_nobody_waits_the_verdict_is_good_and_says_what_cannot_be_seen() -> None:
    row = near.in_all(calibration(waits(0, 5, 0, 9), rule=waits(0, 0, 0, 0))).rows[0]
    found, why = near.verdict(row, 2)
    assert (found, "cannot be seen" in why) == ("good", True)


@given(
    st.floats(700, 1e5),
    st.floats(0.1, 10).filter(lambda ratio: min(abs(ratio - 0.8), abs(ratio - 1.25)) > 1e-6),
    st.floats(-1, 1),
)
def test_a_log_is_only_trusted_whose_mean_waits_agree(
    recorded: float, ratio: float, gain: float
) -> None:
    row = {"policy": "fcfs", "recorded": recorded, "simulated": ratio * recorded, "gain": gain}
    answer, _ = near.verdict(row, 1)
    assert (answer == near.GOOD) == (0.8 <= ratio <= 1.25 and gain >= 0.7)
    assert (answer == near.NOT) == (gain < 0.2)
