"""Sites of the HPC world: what is drawn lies in its range."""

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.objectives.mixtures import weights_of
from meta.tasks import FamilySection
from rllib_configs.config.loading import parse_section
from rllib_configs.config.task_schema import TaskSection

BASE = {
    "world": {"kind": "hpc", "queue": 8},
    "workload": {"kind": "lublin", "jobs": 12},
    "objective": "slowdown",
}


def family(**ranges: object) -> FamilySection:
    return parse_section(FamilySection, {"name": "mine", "base": BASE, "vary": ranges}).check()


def draws(count: int = 40, **ranges: object) -> list[TaskSection]:
    made, rng = family(**ranges), np.random.default_rng(5)
    return [made.draw(rng) for _ in range(count)]


def test_weights_are_shares_of_the_objectives_that_are_named() -> None:
    names = ["bounded_slowdown", "makespan", "relative_completion_time"]
    found = [weights_of(t.build_objective().name) for t in draws(objective_weights=names)]
    assert all(set(one) <= set(names) for one in found)
    assert all(sum(one.values()) == pytest.approx(1, abs=0.03) for one in found)
    assert {len(one) for one in found} == {1, 2, 3}


def test_machines_and_workloads_are_drawn_with_the_jobs_of_the_base() -> None:
    tasks = draws(
        processors=[16, 256],
        workloads={
            "lublin": {"load": {"uniform": [0.5, 0.6]}},
            "lognormal": {"burstiness": {"choice": [0.5, 2]}},
        },
    )
    sizes = [t.world.processors for t in tasks]
    assert 16 <= min(sizes) < 32
    assert 128 < max(sizes) <= 256
    kinds = {t.workload.kind for t in tasks}
    assert kinds == {"lublin", "lognormal"}
    assert {t.workload.jobs for t in tasks} == {12}
    assert all(0.5 <= t.workload.load <= 0.6 for t in tasks if t.workload.kind == "lublin")
    assert {t.workload.burstiness for t in tasks if t.workload.kind == "lognormal"} == {0.5, 2}


def test_a_range_more_leaves_the_others_as_they_are() -> None:
    alone, beside = (
        [t.world.processors for t in draws(processors=[16, 256], **more)]
        for more in ({}, {"objective_weights": ["slowdown", "makespan"]})
    )
    assert alone == beside


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"objective_weights": ["slow"]}, "slow"),
        ({"workloads": {"lublin": {"loads": {"uniform": [0, 1]}}}}, "loads"),
        ({"workloads": {"dublin": {}}}, "dublin"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ranges: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        family(**ranges)
