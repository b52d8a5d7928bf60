"""What is learned: classes of jobs, objectives by class, and variations of a workload."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric
from cluster_env.worlds import WORLDS, get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.rules import RULES, Rules
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload, Ranges
from rllib_configs.config.loading import load_config, parse_section
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions

RUNS = (("estimates", "exact"), ("missing_limits", "run-time"))
"""Options of logs that only worlds with estimates have."""
CLASSES = Cluster(num_classes=3)
SITE = TaskSection(
    world=DeepRM(CLASSES),
    workload={
        "load": 1.1,
        "class_shares": (0.5, 0.25, 0.25),
        "dominant_shares": (0.8, 0.2),
        "burstiness": 0.5,
    },
    objective="class_slowdown(0.1, 1, 10)",
)


def test_a_section_builds_what_it_says() -> None:
    task = SITE.build("site", 3)
    assert task.world == DeepRM(CLASSES)
    assert (task.name, task.seed) == ("site", 3)
    workload = task.workload
    assert isinstance(workload, BimodalWorkload)
    assert workload.cluster == CLASSES
    assert workload.class_shares == (0.5, 0.25, 0.25)
    assert workload.dominant_shares == (0.8, 0.2)
    assert workload.burstiness == 0.5
    assert TaskSection.model_validate(SITE.model_dump(mode="json")) == SITE
    assert TaskSection.of(task) == SITE
    varied = replace(workload, vary=Ranges(load=(0.5, 1.0)))
    assert TaskSection(world=task.world, workload=varied).build().workload == varied


def test_by_default_there_is_one_class_and_nothing_varies() -> None:
    assert TaskSection().world == DeepRM()
    assert TaskSection().build().workload == BimodalWorkload()


def test_own_rules_are_written_as_their_switches() -> None:
    world = DeepRM(rules=Rules(try_last_start=False))
    section = TaskSection(world=world)
    data = section.model_dump(mode="json")
    assert data["world"]["rules"]["try_last_start"] is False
    assert TaskSection.model_validate(data).world == world


def test_rules_that_are_registered_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES, "_things", dict(RULES._things))
    RULES.register("mine")(Rules(linger_finished=True))
    section = TaskSection.model_validate({"world": {"rules": "mine"}})
    assert section.world.switches.linger_finished


def test_a_task_that_no_config_can_name_is_refused() -> None:
    class Unregistered(BimodalWorkload):
        """A workload that nobody has entered anywhere."""

    task = replace(TaskSection().build(), workload=Unregistered())
    with pytest.raises(InputError, match=r"cannot name a Unregistered.* it has bimodal, trace"):
        TaskSection.of(task)


def test_the_words_of_a_dataclass_describe_its_settings() -> None:
    fields = type(SITE.workload).model_fields
    assert fields["load"].description.startswith("mean demand over capacity: arrival rate")
    assert "cluster" not in fields
    assert "first_step" not in fields


def test_a_task_with_classes_can_be_scored_by_its_objective() -> None:
    task = SITE.build()
    schedule = evaluate(
        get_heuristic("sjf", task.world), task.jobsets(Split.TRAIN, range(3)), task.world
    )
    assert set(schedule.job_class) == {0, 1, 2}
    metric = SITE.build_objective().metric
    assert metric.name == get_metric(SITE.objective).name == "class_slowdown(0.1, 1, 10)"
    by_hand = np.array([0.1, 1, 10])[schedule.job_class] * schedule.slowdown
    assert metric.values(schedule) == pytest.approx(by_hand)


@pytest.mark.parametrize("objective", ["class_slowdown(1, 2)", {"class_slowdown(1, 2)": 0.5}])
def test_an_objective_that_lacks_a_class_is_refused_before_anything_runs(objective: object) -> None:
    section = TaskSection(world=DeepRM(CLASSES), objective=objective)
    with pytest.raises(InputError, match=r"jobs of class 2, but class_slowdown\(1, 2\)"):
        section.build()
    TaskSection(world=DeepRM(Cluster(num_classes=2)), objective=objective).build()


def test_what_a_trace_brings_itself_is_not_set_beside_it() -> None:
    for name, value in (
        ("class_shares", [1.0]),
        ("dominant_shares", [0.5, 0.5]),
        ("burstiness", 0.1),
    ):
        data = {"workload": {"kind": "trace", "path": "jobs.csv", name: value}}
        with pytest.raises(InputError, match=f"workload.{name} is not used by the workload trace"):
            parse_section(TaskSection, data)
    section = TaskSection.model_validate({"workload": {"kind": "trace", "path": "jobs.csv"}})
    shared = {"path", "window", "offset", "stretch", "scaled_load", "block", "splits", "whole"}
    shared |= {"warmup", "log_format", "time_zone", "columns", "partition"}
    assert set(section.workload.model_dump()) == {"kind", *shared, "seconds", "units"}


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        *((option, value, "policies see how long jobs last") for option, value in RUNS),
        ("jobs", 5, "windows are by time, because episodes end at task.world.max_time"),
        ("hash_users", True, "no names"),
    ],
)
def test_options_that_logs_of_a_world_cannot_have_are_refused_with_the_reason(
    option: str, value: object, why: str
) -> None:
    data = {"world": {"kind": "deeprm"}, "workload": {"kind": "trace", "path": "jobs.csv"}}
    data["workload"][option] = value  # type: ignore[assignment]
    pattern = f"workload.{option} is not used by the workload trace of this world: .*{why}"
    with pytest.raises(InputError, match=pattern):
        parse_section(TaskSection, data)
    log = WORLDS.get("deeprm").workloads.get("trace").workload
    with pytest.raises(InputError, match=f"{option} is no option of logs in this world: .*{why}"):
        log("jobs.csv", **{option: value})


def test_a_network_reads_the_classes() -> None:
    world, states, present = _of_classes()
    network, layout = SetScorer(world.feature_names, SetScorerOptions(32), 0), StateLayout(CLASSES)
    assert network.job.in_features == len(DeepRM().feature_names[0]) + 3
    with torch.no_grad():
        logits = network(world.features(states))
        states[:, layout.classes] = np.where(present, (states[:, layout.classes] + 1) % 3, 0)
        assert not torch.equal(network(world.features(states)), logits)
    assert logits.shape == (8, CLASSES.num_actions)


def _of_classes() -> tuple[DeepRM, NDArray[np.uint8], NDArray[np.bool_]]:
    """The site, states in which jobs of several classes wait, and which slots have one."""
    task = SITE.build()
    simulator = task.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(8)), task.objective)
    for _ in range(20):
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        void = np.full(rows.size, task.world.num_actions - 1, np.int32)
        simulator.step(rows, void, np.zeros(rows.size))
    states = simulator.states.copy()
    present = StateLayout(CLASSES).slots_of(states)[:, :, 0] > 0
    assert present.any()
    return task.world, states, present


def test_the_objective_is_the_usual_one_of_the_world() -> None:
    assert TaskSection().objective == "slowdown"
    assert TaskSection(world={"kind": "hpc"}).objective == "bounded_slowdown"
    assert TaskSection(world={"kind": "hpc"}, objective="makespan").objective == "makespan"


def test_rewards_that_are_discounted_already_are_not_discounted_again() -> None:
    """Cunha, section 4.7.3: gamma 1, or eq. 2.19 with the same discount by the second."""
    options = "task.world.reward=options"
    once = ["training.gamma=0.99", "training.discount_per=time_unit"]
    assert load_config("hpc-smoke", [options]).training.gamma == 1
    assert load_config("hpc-smoke", [options, *once]).training.gamma == 0.99
    assert load_config("hpc-smoke", ["training.gamma=0.9"]).training.gamma == 0.9
    twice = ["training.gamma=0.99", "training.discount_per=decision"]
    for changes in (twice, ["training.gamma=0.5"], [*once, "task.world.reward_discount=0.9"]):
        with pytest.raises(InputError, match=r"training\.gamma must be 1, or"):
            load_config("hpc-smoke", [options, *changes])
