"""Distributions by name, and splits that share neither tasks nor jobsets."""

import sys
from collections import Counter
from hashlib import sha256
from itertools import combinations
from types import ModuleType

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import nonnegative_cost
from meta.tasks import (
    TASK_DISTRIBUTIONS,
    TaskDistribution,
    TaskSplit,
    get_distribution,
    objective_kind,
)
from rllib_configs.config.loading import parse_section
from rllib_configs.config.task_schema import TaskSection

FAMILIES = TASK_DISTRIBUTIONS.names()
OF_DEEPRM = [name for name in FAMILIES if get_distribution(name).base.world.kind == "deeprm"]


class TwoLoads:
    """A distribution of one's own: anything with a name, a base and draw."""

    name = "two-loads"
    base = TaskSection()

    def draw(self, rng: np.random.Generator) -> TaskSection:
        load = 0.5 if rng.random() < 0.5 else 1.0
        workload = self.base.workload.model_copy(update={"load": load})
        return self.base.model_copy(update={"workload": workload})


@pytest.mark.parametrize("name", OF_DEEPRM)
def test_every_family_gives_tasks_that_can_be_built_and_have_a_cost(name: str) -> None:
    tasks = TaskSplit(get_distribution(name), 0, Split.TRAIN)
    base = tasks.distribution.base
    for task in (tasks.task(index) for index in range(25)):
        world = task.world
        assert world.rules == "released"
        in_operation = name.endswith("-operation")
        assert world.max_time == base.world.max_time == (5000 if in_operation else 1000)
        assert world.cluster.horizon == base.world.cluster.horizon
        assert len(world.cluster.capacity) == len(base.world.cluster.capacity)
        (jobset,) = task.jobsets(Split.TRAIN, [0])
        world.check(jobset)
        assert task.workload.window == (500 if in_operation else 50)
        assert not nonnegative_cost(task.objective).higher_is_better


def test_sites_differ_in_machine_jobs_estimates_and_objective() -> None:
    tasks = TaskSplit(get_distribution("sites"), 0, Split.TRAIN)
    found = [tasks.task(index) for index in range(40)]
    for task in found:
        (jobset,) = task.jobsets(Split.TRAIN, [0])
        task.world.check(jobset)
        assert jobset.num_jobs == 96
        assert not nonnegative_cost(task.objective).higher_is_better
    assert {type(task.workload).__name__ for task in found} == {
        "LublinWorkload",
        "LognormalWorkload",
    }
    assert len({task.world.processors for task in found}) > 30
    assert len({task.objective.name for task in found}) > 20
    assert {task.workload.estimates for task in found} > {"exact", "tsafrir"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_task_of_a_family_can_be_written_down(name: str) -> None:
    for index in range(25):
        task = TaskSplit(get_distribution(name), 1, Split.HELD_OUT).task(index)
        section = TaskSection.of(task)
        assert section.build(task.name, task.seed) == task
        assert parse_section(TaskSection, section.model_dump(mode="json")) == section


# Of the families at version 0.1.0: results that name a task, as objectives:3, depend on them.
DIGESTS = {
    "mixed": "6448a69cb4dacdd5",
    "objectives": "07d53318e697ef10",
    "priorities": "be623cefb1b7bf21",
    "workloads": "2961b600bb5e0e4e",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_tasks_and_their_jobsets_are_what_they_were(name: str) -> None:
    digest = sha256()
    for split in Split:
        for index in range(10):
            task = TaskSplit(get_distribution(name), 3, split).task(index)
            told = f"{task.name} {task.seed} {task.objective.name} {task.world.cluster.capacity}"
            digest.update(told.encode())
            for jobset in task.jobsets(split, range(2)):
                for column in (jobset.arrival, jobset.duration, jobset.demand, jobset.job_class):
                    digest.update(column.tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[name]


def test_the_families_are_registered_by_their_names() -> None:
    short = {"objectives", "priorities", "workloads"}
    in_operation = {f"{name}-operation" for name in short}
    users = {"users", "users-ended", "users-seen", "users-told"}
    assert set(FAMILIES) == {"mixed", "shifts", "sites"} | short | in_operation | users
    assert all(get_distribution(name).name == name for name in FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_two_splits_seeds_or_indices_share_a_task_or_its_jobsets(name: str) -> None:
    distribution = get_distribution(name)
    tasks = [
        TaskSplit(distribution, seed, split).task(index)
        for seed in range(2)
        for split in Split
        for index in range(3)
    ]
    assert len({task.seed for task in tasks}) == len(tasks)
    drawn = [
        task.jobsets(split, range(2)) for task in tasks for split in (Split.TRAIN, Split.HELD_OUT)
    ]
    arrays = [(j.arrival.tobytes(), j.demand.tobytes()) for part in drawn for j in part]
    for a, b in combinations([a for a in arrays if len(a[0]) > 20], 2):
        assert a != b
    loads = [getattr(task.workload, "load", task.seed) for task in tasks]
    assert len(set(loads)) == len(loads)


def test_a_task_depends_on_seed_split_and_index_alone() -> None:
    tasks = TaskSplit(get_distribution("workloads"), 4, Split.VALIDATION)
    later = tasks.task(9)
    assert [tasks.task(index) for index in range(10)][9] == later
    assert tasks.task(9) == TaskSplit(get_distribution("workloads"), 4, Split.VALIDATION).task(9)


def test_names_say_which_split_a_task_is_of() -> None:
    distribution = get_distribution("objectives")
    names = [TaskSplit(distribution, 0, split).task(3).name for split in Split]
    assert names == ["objectives:train:3", "objectives:validation:3", "objectives:3"]


def test_a_distribution_of_ones_own_is_found_by_module_and_attribute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("my_tasks")
    module.LOADS, module.NOTHING = TwoLoads(), 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_tasks", module)
    monkeypatch.delenv("METASCHED_IMPORTS", raising=False)
    with pytest.raises(InputError, match="set METASCHED_IMPORTS=my_tasks in the environment"):
        get_distribution("my_tasks:LOADS")
    monkeypatch.setenv("METASCHED_IMPORTS", "other,my_tasks,no_such_module_anywhere")
    found = get_distribution("my_tasks:LOADS")
    assert isinstance(found, TaskDistribution)
    loads = {TaskSplit(found, 0, Split.TRAIN).task(i).workload.load for i in range(20)}
    assert loads == {0.5, 1.0}
    with pytest.raises(InputError, match="needs a name, a base and a method draw"):
        get_distribution("my_tasks:NOTHING")
    with pytest.raises(InputError, match="cannot be imported"):
        get_distribution("my_tasks:MISSING")
    with pytest.raises(InputError, match="cannot be imported"):
        get_distribution("no_such_module_anywhere:MISSING")


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(InputError, match="counted from 0, but -1"):
        TaskSplit(get_distribution("objectives"), 0, Split.TRAIN).task(-1)


def test_balanced_tasks_are_as_many_of_each_kind_in_the_order_of_their_indices() -> None:
    tasks = TaskSplit(get_distribution("objectives"), 3, Split.HELD_OUT)
    found = tasks.balanced(20)
    kinds = [objective_kind(task) for task in found]
    assert set(Counter(kinds).values()) == {4}
    indices = [int(task.name.rpartition(":")[2]) for task in found]
    assert indices == sorted(set(indices))
    of_first = [i for i in range(200) if objective_kind(tasks.task(i)) == kinds[0]][:4]
    assert [i for i, kind in zip(indices, kinds, strict=True) if kind == kinds[0]] == of_first


def test_balanced_tasks_of_one_kind_are_the_first_ones() -> None:
    tasks = TaskSplit(get_distribution("priorities"), 0, Split.VALIDATION)
    assert tasks.balanced(5) == [tasks.task(index) for index in range(5)]


def test_balanced_tasks_are_all_that_were_asked_for_even_if_a_kind_is_rare() -> None:
    class MostlySlowdown:
        name = "mostly"
        base = TaskSection()

        def draw(self, rng: np.random.Generator) -> TaskSection:
            return TaskSection(objective="makespan" if rng.random() < 0.02 else "slowdown")

    found = TaskSplit(MostlySlowdown(), 1, Split.TRAIN).balanced(12)
    kinds = Counter(objective_kind(task) for task in found)
    assert kinds["makespan"] >= 1
    assert kinds.total() == 12
