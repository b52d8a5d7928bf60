"""What is learned: classes of jobs, objectives by class, and variations of a workload."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric, objective_metric
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds.deeprm.cluster import Cluster
from cluster_env.worlds.deeprm.features import slot_feature_names
from cluster_env.worlds.deeprm.heuristics import get_heuristic
from cluster_env.worlds.deeprm.simulator import DeepRMSimulator
from cluster_env.worlds.deeprm.state import StateLayout
from cluster_env.worlds.deeprm.workloads import BimodalWorkload, VariedWorkload
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.task_schema import ClusterSection, TaskSection, VarySection, WorkloadSection

SITE = TaskSection(
    objective="class_slowdown(0.1, 1, 10)",
    cluster=ClusterSection(num_classes=3),
    workload=WorkloadSection(
        load=1.1, class_shares=(0.5, 0.25, 0.25), dominant_shares=(0.8, 0.2), burstiness=0.5
    ),
)


def test_a_section_builds_what_it_says() -> None:
    assert SITE.cluster.build() == Cluster(num_classes=3)
    workload = SITE.build_workload()
    assert isinstance(workload, BimodalWorkload)
    assert workload.class_shares == (0.5, 0.25, 0.25)
    assert workload.dominant_shares == (0.8, 0.2)
    assert workload.burstiness == 0.5
    assert TaskSection.model_validate(SITE.model_dump(mode="json")) == SITE
    varied = SITE.workload.model_copy(update={"vary": VarySection(load=(0.5, 1.0))})
    section = SITE.model_copy(update={"workload": varied})
    mixed = section.build_workload()
    assert isinstance(mixed, VariedWorkload)
    assert mixed.base.burstiness == 0.5


def test_by_default_there_is_one_class_and_nothing_varies() -> None:
    assert TaskSection().cluster.build() == Cluster()
    assert TaskSection().build_workload() == BimodalWorkload()


def test_a_task_with_classes_can_be_scored_by_its_objective() -> None:
    jobsets = sample_jobsets(SITE.build_workload(), 0, Split.TRAIN, range(3))
    schedule = evaluate(get_heuristic("sjf", Cluster()), jobsets, SITE.cluster.build())
    assert set(schedule.job_class) == {0, 1, 2}
    metric = objective_metric(SITE.build_objective())
    assert metric.name == get_metric(SITE.objective).name == "class_slowdown(0.1, 1, 10)"
    by_hand = np.array([0.1, 1, 10])[schedule.job_class] * schedule.slowdown
    assert metric.values(schedule) == pytest.approx(by_hand)


@pytest.mark.parametrize("objective", ["class_slowdown(1, 2)", {"class_slowdown(1, 2)": 0.5}])
def test_an_objective_that_lacks_a_class_is_refused_before_anything_runs(objective: object) -> None:
    section = TaskSection(objective=objective, cluster=ClusterSection(num_classes=3))
    with pytest.raises(InputError, match=r"jobs of class 2, but class_slowdown\(1, 2\)"):
        section.build_objective()
    TaskSection(objective=objective, cluster=ClusterSection(num_classes=2)).build_objective()


def test_what_a_trace_brings_itself_is_not_set_beside_it() -> None:
    for name, value in (
        ("class_shares", [1.0]),
        ("dominant_shares", [0.5, 0.5]),
        ("burstiness", 0.1),
    ):
        with pytest.raises(ValidationError, match=f"leave out {name}"):
            WorkloadSection.model_validate({"trace": "jobs.csv", name: value})
    assert "burstiness" not in WorkloadSection(trace="jobs.csv").model_dump()


def test_a_network_reads_the_classes() -> None:
    cluster = SITE.cluster.build()
    world = SITE.build_world()
    network = SetScorer(world.feature_names, SetScorerOptions(32), 0)
    assert network.job.in_features == len(slot_feature_names(Cluster())) + 3
    simulator = DeepRMSimulator(cluster)
    jobsets = sample_jobsets(SITE.build_workload(), 0, Split.TRAIN, range(8))
    simulator.load(jobsets, SITE.build_objective())
    for _ in range(20):
        simulator.step_all(np.full(8, cluster.num_actions - 1, np.int32))
    states, layout = simulator.states.copy(), StateLayout(cluster)
    present = layout.slots_of(states)[:, :, 0] > 0
    assert present.any()
    with torch.no_grad():
        logits = network(world.features(states))
        states[:, layout.classes] = np.where(present, (states[:, layout.classes] + 1) % 3, 0)
        assert not torch.equal(network(world.features(states)), logits)
    assert logits.shape == (8, cluster.num_actions)
