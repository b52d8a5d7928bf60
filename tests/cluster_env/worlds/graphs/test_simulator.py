"""The simulator beside a plain one, and beside spark-sched-sim."""

import json
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cluster_env.core.graphs import Stages, graph_jobs
from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.objectives import get_objective
from cluster_env.worlds.graphs import Graphs
from cluster_env.worlds.graphs.heuristics import GraphsPolicy
from cluster_env.worlds.graphs.rules import CONTEXT, Rule
from cluster_env.worlds.graphs.state import NUM_WEIGHTS
from cluster_env.worlds.graphs.workloads import GeneratedWorkload
from tests.conftest import REPOSITORY
from tests.golden import stored
from tune_jobs.benchmarks.plain_graphs import PlainGraphs

TRACE = REPOSITORY.parent / "shared" / "traces" / "tpch-spark-dags.json.gz"
RULES = ("fifo", "fair", "weighted_fair:-0.6", "sjf_cp")
with_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is absent")


@st.composite
def jobsets(draw: st.DrawFn) -> JobSet:
    num_jobs = draw(st.integers(1, 6))
    width = 4
    tasks = np.zeros((num_jobs, width), np.int64)
    time, parents = np.zeros((num_jobs, width)), np.zeros((num_jobs, width), np.int64)
    for job in range(num_jobs):
        for stage in range(draw(st.integers(1, width))):
            tasks[job, stage] = draw(st.integers(1, 5))
            time[job, stage] = draw(st.sampled_from([1, 2, 3, 10]))
            parents[job, stage] = draw(st.integers(0, 2**stage - 1))
    gaps = draw(
        st.lists(st.sampled_from([0, 0, 1, 2, 7, 30]), min_size=num_jobs, max_size=num_jobs)
    )
    seeds = np.stack([np.full(num_jobs, draw(st.integers(0, 99))), np.arange(num_jobs)], axis=1)
    return graph_jobs(np.cumsum(gaps), Stages(tasks, time, parents), attributes={"draw": seeds})


def with_one_that_waits_on() -> JobSet:
    """Jobs at one of which executors wait again for parents while others of them go elsewhere."""
    tasks = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    parents = np.zeros((4, 4), np.int64)
    parents[0] = [0, 0, 2, 4]
    seeds = np.stack([np.zeros(4, np.int64), np.arange(4)], axis=1)
    stages = Stages(tasks, tasks.astype(np.float64), parents)
    return graph_jobs(np.zeros(4), stages, attributes={"draw": seeds})


@pytest.mark.parametrize("rule", RULES)
@example(jobset=with_one_that_waits_on(), executors=5, delay=0, warmup=0)
@given(
    jobset=jobsets(),
    executors=st.integers(1, 6),
    delay=st.sampled_from([0, 1, 3]),
    warmup=st.sampled_from([0, 2]),
)
@settings(max_examples=80, deadline=None)
def test_it_runs_as_a_plain_one_does(rule, jobset, executors, delay, warmup):
    world = Graphs(executors=executors, delay=delay, warmup=warmup, stages=4, spread=0.4)
    played = evaluate(get_heuristic(rule, world), [jobset], world)
    name, _, exponent = rule.partition(":")
    plain = PlainGraphs(world, jobset, name, float(exponent or 0))
    assert played.finish.tolist() == plain.play()
    pieces = played.pieces
    ours = sorted(
        zip(
            pieces.job.tolist(),
            pieces.begin.tolist(),
            pieces.end.tolist(),
            pieces.node.tolist(),
            strict=True,
        )
    )
    assert ours == sorted((job, begin, end, one) for job, _, begin, end, one in plain.begun)


@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("name", [*RULES, "scorer"])
def test_a_rule_chooses_what_it_plays_however_few_stages_a_state_shows(name, candidates):
    world = Graphs(executors=4, candidates=candidates)
    jobset = GeneratedWorkload(jobs=12, gap_s=1.0).sample(np.random.default_rng(5))
    if name == "scorer":
        weights = np.random.default_rng(1).normal(size=(len(CONTEXT), NUM_WEIGHTS))
        policy = GraphsPolicy(world, name, Rule(name, weights))
    else:
        policy = get_heuristic(name, world)
    simulator = world.simulator()
    simulator.load([jobset], get_objective("completion_time"))
    rewards = np.empty(1)
    while simulator.active.any():
        simulator.step(simulator.episode, simulator.choose(policy.rule, simulator.episode), rewards)
    assert simulator.schedule().finish.tolist() == evaluate(policy, [jobset], world).finish.tolist()


def sequence(world: Graphs, facts: dict) -> JobSet:
    names = world.library.names
    graph = np.array([names.index(name) for name in facts["graph"]])
    stages = Stages(*(column[graph] for column in world.library.stages))
    seeds = np.stack([np.full(graph.size, facts["seed"]), np.arange(graph.size)], axis=1)
    # Executors are free at whole milliseconds, so that nothing changes if jobs come at the next.
    arrival = np.ceil(facts["arrival_ms"])
    return graph_jobs(arrival, stages, attributes={"graph": graph, "draw": seeds})


@with_trace
def test_jobs_finish_as_in_spark_sched_sim(golden):
    recorded = json.loads(stored(golden / "graphs" / "spark_sched_sim.json").read_text())
    for facts in recorded.values():
        world = Graphs(executors=facts["executors"], durations=str(TRACE))
        jobset = sequence(world, facts)
        fifo = evaluate(get_heuristic("fifo", world), [jobset], world)
        assert fifo.finish.tolist() == facts["fifo_finish_ms"]
        fair = evaluate(get_heuristic("fair", world), [jobset], world)
        # Which executor moves is an accident there, which matters least to few executors.
        theirs = np.subtract(facts["fair_finish_ms"], facts["arrival_ms"]).mean()
        assert fair.completion.mean() == pytest.approx(theirs, rel=0.01)


@with_trace
@pytest.mark.parametrize("rule", RULES)
def test_measured_durations_are_drawn_as_a_plain_one_does(rule):
    world = Graphs(executors=30, durations=str(TRACE))
    graph = [3, 40, 7, 90, 1]
    facts = {
        "graph": [world.library.names[k] for k in graph],
        "arrival_ms": np.arange(5) * 5000.0,
        "seed": 5,
    }
    jobset = sequence(world, facts)
    name, _, exponent = rule.partition(":")
    played = evaluate(get_heuristic(rule, world), [jobset], world)
    assert played.finish.tolist() == PlainGraphs(world, jobset, name, float(exponent or 0)).play()


def test_it_is_far_faster_than_a_plain_one():
    """Here 160 times and more; a third of that, because others may use the caches of the core."""
    world = Graphs(executors=50)
    jobset = world.served(GeneratedWorkload(jobs=60, gap_s=11.0).sample(np.random.default_rng(0)))
    simulator, rule = world.simulator(), get_heuristic("fair", world).rule
    simulator.load([jobset], get_objective("completion_time"))
    simulator.play(rule)
    began = process_time()
    for _ in range(10):
        simulator.play(rule)
    ours, began = (process_time() - began) / 10, process_time()
    PlainGraphs(world, jobset, "fair", 0.0).play()
    assert process_time() - began > 50 * ours
