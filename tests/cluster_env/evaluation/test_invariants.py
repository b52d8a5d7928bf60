"""The checker of schedules finds every kind of fault."""

from dataclasses import replace

import numpy as np
import pytest

from cluster_env.core.invariants import ScheduleFault, check_schedule
from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Pieces, Schedule
from tests.cluster_env.schedules import schedule_of

# Jobs 0 and 1 share the cluster; job 2 starts at the instant at which job 0 finishes.
JOBSETS = [JobSet.of([0, 0, 1], [2, 4, 3], [[1, 1], [1, 3], [1, 1]], window=5)]


def worked() -> Schedule:
    return schedule_of(JOBSETS[0], [0, 0, 2], 5, [2, 4])


def test_a_schedule_without_fault_passes() -> None:
    check_schedule(worked(), JOBSETS, complete_until=5)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"start": [0, 0, 0], "finish": [2, 4, 3]}, "job 2 of episode 0 starts before it arrives"),
        ({"start": [0, 0, 1], "finish": [2, 4, 4]}, "job 2 of episode 0 starts when .* no room"),
        ({"finish": [2, 4, 4]}, "job 2 of episode 0 does not run for its whole length"),
        ({"start": [0, 0, 4], "finish": [2, 4, 7]}, "job 2 .* finishes after the end"),
        ({"start": [-1, 0, 2]}, "job 0 of episode 0 finishes without a start"),
        ({"finish": [2, -1, 5]}, "job 1 of episode 0 has run to its end but is not finished"),
        ({"start": [0, 0, -1], "finish": [2, 4, -1]}, "job 2 of episode 0 never finishes"),
        ({"arrival": [0, 0, 0]}, "job 2 of episode 0 has another arrival"),
        ({"duration": [2, 4, 4]}, "job 2 of episode 0 has another duration"),
        ({"demand": [[1, 1], [1, 2], [1, 1]]}, "job 1 of episode 0 has another demand"),
        ({"job_class": [0, 0, 1]}, "job 2 of episode 0 has another class"),
        ({"job": [0, 1, 3]}, "job 3 of episode 0 is not in its jobset"),
        (
            {
                "job": [0, 1, 1],
                "arrival": [0, 0, 0],
                "duration": [2, 4, 4],
                "demand": [[1, 1], [1, 3], [1, 3]],
            },
            "job 1 of episode 0 is there 2 times",
        ),
    ],
)
def test_each_fault_is_found_and_named(changes: dict[str, object], complaint: str) -> None:
    arrays = {name: np.array(values, np.int32) for name, values in changes.items()}
    with pytest.raises(ScheduleFault, match=complaint):
        check_schedule(replace(worked(), **arrays), JOBSETS, complete_until=5)


def test_a_lost_job_is_found() -> None:
    full = worked()
    per_job = (
        *("episode", "job", "arrival", "start", "finish"),
        *("duration", "demand", "job_class"),
    )
    lost = replace(full, **{name: getattr(full, name)[:2] for name in per_job})
    with pytest.raises(ScheduleFault, match="episode 0 has 2 jobs, but 3"):
        check_schedule(lost, JOBSETS)


def test_without_a_promise_of_completeness_unfinished_jobs_are_let_be() -> None:
    unfinished = replace(
        worked(), start=np.array([0, 0, -1], np.int32), finish=np.array([2, 4, -1], np.int32)
    )
    check_schedule(unfinished, JOBSETS)


# A job of 2 x 6 units and steps, and one of 2 x 2 that takes its place from 2 to 4.
PREEMPTED = [JobSet.of([0, 1], [6, 2], [[2], [2]], attributes={"weight": [1.0, 3.0]})]


def in_pieces(**changes: object) -> Schedule:
    """Job 0 is preempted by job 1, comes back squeezed to 1 unit, and then gets all 2."""
    columns: dict[str, object] = {
        "job": [0, 1, 0, 0],
        "begin": [0, 2, 4, 6],
        "end": [2, 4, 6, 9],
        "units": [[2], [2], [1], [2]],
    }
    columns |= {name: value for name, value in changes.items() if name in columns}
    rest = {name: value for name, value in changes.items() if name not in columns}
    if "episode_end" in rest:
        rest["end"] = rest.pop("episode_end")
    pieces = Pieces(*(np.array(column, np.int32) for column in columns.values()))
    schedule = schedule_of(PREEMPTED[0], [0, 2], 9, [2], finish=[9, 4], pieces=pieces)
    arrays = {name: np.array(values, np.int32) for name, values in rest.items()}
    return replace(schedule, **arrays)  # type: ignore[arg-type]


def test_jobs_in_pieces_pass_if_their_pieces_are_their_work() -> None:
    check_schedule(in_pieces(), PREEMPTED, complete_until=9)
    # Cut in the last piece: what was held until the end is less than the work.
    check_schedule(in_pieces(end=[2, 4, 6, 8], finish=[-1, 4], episode_end=[8]), PREEMPTED)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"job": [0, 1, 0, 2]}, "a job that is not in the schedule"),
        ({"start": [0, -1], "finish": [9, -1]}, "job 1 of episode 0 has a piece but no start"),
        ({"begin": [0, 0, 4, 6], "end": [2, 2, 6, 9]}, "job 1 .* begins before it arrives"),
        ({"start": [1, 2]}, "job 0 .* begins before its start"),
        ({"begin": [0, 4, 4, 6]}, "job 1 .* does not end after it begins"),
        ({"finish": [8, 4]}, "job 0 of episode 0 has a piece after its finish"),
        ({"finish": [-1, 4], "end": [2, 4, 6, 10]}, "job 0 .* or the end of its episode"),
        ({"units": [[2], [2], [-1], [2]]}, "job 0 .* less than 0 units"),
        ({"units": [[2], [2], [2], [2]]}, "job 0 .* more work in its pieces"),
        ({"units": [[2], [1], [1], [2]]}, "job 1 .* is finished with less work"),
        ({"finish": [-1, 4]}, "job 0 .* has run to its end but is not finished"),
        (
            {"begin": [0, 1, 4, 6], "end": [2, 3, 6, 9], "start": [0, 1]},
            "job 1 .* when the cluster has no room",
        ),
        ({"arrival": [0, 0]}, "job 1 of episode 0 has another arrival"),
    ],
)
def test_each_fault_of_pieces_is_found_and_named(
    changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ScheduleFault, match=complaint):
        check_schedule(in_pieces(**changes), PREEMPTED)


def test_fractions_of_units_may_be_off_by_rounding_and_no_more() -> None:
    # Nine thirds of a unit for 2 steps each: in floating point not exactly 2 x 3 units and steps.
    jobset = JobSet.of([0], [3], [[2]])
    begin = 2 * np.arange(9, dtype=np.int32)

    def fractions(units: float) -> Schedule:
        held = np.full((9, 1), units)
        pieces = Pieces(np.zeros(9, np.int32), begin, begin + np.int32(2), held)
        return schedule_of(jobset, [0], 18, [2], finish=[18], pieces=pieces)

    check_schedule(fractions(1 / 3), [jobset], complete_until=18)
    with pytest.raises(ScheduleFault, match="more work in its pieces"):
        check_schedule(fractions(1 / 3 + 1e-6), [jobset])
    with pytest.raises(ScheduleFault, match="finished with less work"):
        check_schedule(fractions(1 / 3 - 1e-6), [jobset])


def test_pieces_on_nodes_stay_within_each_node() -> None:
    # One unit on each of two nodes, at one time, is one job of two units.
    jobset = JobSet.of([0], [2], [[2]])

    def spread(*node: int) -> Schedule:
        zeros, twos = np.zeros(2, np.int32), np.full(2, 2, np.int32)
        pieces = Pieces(zeros, zeros, twos, np.int32([[1], [1]]), np.array(node, np.int32))
        return schedule_of(jobset, [0], 2, [2], pieces=pieces)

    nodes = np.int32([[1], [1]])
    check_schedule(spread(0, 1), [jobset], node_capacity=nodes)
    check_schedule(spread(0, 0), [jobset])
    with pytest.raises(ScheduleFault, match=r"job 0 .* its node has no room"):
        check_schedule(spread(0, 0), [jobset], node_capacity=nodes)
    with pytest.raises(ScheduleFault, match=r"job 0 .* on a node that is not there"):
        check_schedule(spread(0, 2), [jobset], node_capacity=nodes)
    with pytest.raises(ScheduleFault, match="the pieces have no nodes"):
        check_schedule(in_pieces(), PREEMPTED, node_capacity=nodes)


def test_attributes_that_differ_from_the_jobset_are_found() -> None:
    with pytest.raises(ScheduleFault, match="job 1 of episode 0 has another weight"):
        check_schedule(replace(in_pieces(), attributes={"weight": [1.0, 2.0]}), PREEMPTED)
