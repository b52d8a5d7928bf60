"""Figures of agents on unlike nodes and of their advisors."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.panda.consumers import Consumers
from meta.panda.advisor import initial_advisor
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.drawing import all_texts
from tune_jobs.figures import advisors as drawn_advisors
from tune_jobs.figures import agents as drawn_agents
from tune_jobs.measuring.trained_runs import check_fits, load_runs
from tune_jobs.recipes import advisors, agents
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import write_table

pytestmark = pytest.mark.rendered

SMALL = ("task.workload.window=30", "training.units=2", "training.classes=4")


def run_of(folder: Path, advisor: str) -> str:
    """A policy as it is drawn at first."""
    config = load_config("panda-drift", [*SMALL, f"training.advisor={advisor}"])
    network = initial_advisor(config, config.task.world)
    state = {f"network.{name}": value.numpy() for name, value in network.state_dict().items()}
    write_policy(state, config, folder / "policy")
    return str(folder)


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run_of(tmp_path_factory.mktemp("flat"), "flat")


def test_rules_and_policies_stand_side_by_side_with_their_price(flat: str, tmp_path: Path) -> None:
    request = FigureRequest(runs=[flat], num_jobsets=2, decode="argmax")
    rows = agents.collect(request)
    assert [row["policy"] for row in rows][-1] == "panda-drift (argmax)"
    assert len(rows) == 8
    write_table(tmp_path / "it.csv", rows)
    shown = all_texts(drawn_agents.draw(tmp_path / "it.csv"))
    for row in rows:
        for metric in ("completion_time", *drawn_agents.PANELS):
            assert f"{float(str(row[metric])):.3g}" in shown


def test_beside_weights_of_classes_stands_the_rule_that_reads_them(tmp_path: Path) -> None:
    small = ["task.workload.window=40"]
    rows = agents.collect(FigureRequest(source="panda-tenants", overrides=small, num_jobsets=4))
    weighted = str(rows[0]["metric"])
    assert weighted == "class_slowdown(10, 0.1, 10, 0.1)"
    costs = {row["policy"]: float(str(row[weighted])) for row in rows}
    assert costs.pop("weighted_shortest_fit") < min(costs.values())
    write_table(tmp_path / "it.csv", rows)
    shown = all_texts(drawn_agents.draw(tmp_path / "it.csv"))
    assert f"{float(str(rows[-1][weighted])):.3g}" in shown


def test_times_are_those_of_the_consumers_that_arrive_in_each_part(
    flat: str, tmp_path: Path
) -> None:
    rows = agents.collect_drift(FigureRequest(runs=[flat], num_jobsets=3, decode="argmax"))
    assert len(rows) == 8 * agents.BINS
    mix = np.array([[float(share) for share in str(row["mix"]).split()] for row in rows])
    assert np.allclose(mix.sum(axis=1), 1.0, atol=1e-3)
    assert {row["there"] for row in rows} == {1.0}  # no node leaves in this task
    best = [row for row in rows if row["policy"] == "best_fit"]
    assert [row["time"] for row in best[:2]] == [1.5, 4.5]
    assert all(float(str(row["low"])) <= float(str(row["value"])) for row in rows)
    write_table(tmp_path / "it.csv", rows)
    assert "mean total time (steps)" in all_texts(drawn_agents.draw_drift(tmp_path / "it.csv"))


def test_a_part_of_the_supply_is_missing_where_nodes_are_away() -> None:
    world = load_config("panda-elastic").task.world
    jobset = Consumers.with_supply([0], [5], [1], away=[(3, 20, 20, 90)], window=40)
    found = agents._supply([jobset], world)
    assert found[0] == 1.0
    assert found[-1] == pytest.approx(1 - world.nodes.work[3] / world.nodes.work.sum())


def test_leaves_of_the_dendrogram_are_types_and_all_consumers_are_below_the_root(
    tmp_path: Path,
) -> None:
    request = FigureRequest(source="panda-drift", overrides=["task.workload.window=100"])
    rows = advisors.collect_dendrogram(request)
    types = [row for row in rows if row["left"] == ""]
    merges = [row for row in rows if row["left"] != ""]
    assert len(merges) == len(types) - 1
    assert merges[-1]["consumers"] == sum(int(str(row["consumers"])) for row in types)
    heights = {row["node"]: float(str(row["height"])) for row in rows}
    assert all(heights[row["node"]] > heights[row["left"]] for row in merges)
    assert all(float(str(row["posterior"])) < 0.5 for row in merges[-1:])
    write_table(tmp_path / "it.csv", rows)
    shown = all_texts(drawn_advisors.draw_dendrogram(tmp_path / "it.csv"))
    assert sum("class" in text and "%" in text for text in shown) >= len(types)


def test_actors_lie_along_their_main_directions_by_class(flat: str, tmp_path: Path) -> None:
    rows = advisors.collect_advisor(FigureRequest(runs=[flat]))
    assert len({row["class"] for row in rows}) > 3
    assert 0.5 < float(str(rows[0]["explained_x"])) <= 1
    write_table(tmp_path / "it.csv", rows)
    assert "flat, seed 0" in all_texts(drawn_advisors.draw_advisor(tmp_path / "it.csv"))
    line = np.outer(np.arange(5.0), [3.0, 4.0])
    points, shares = advisors.main_directions(line)
    assert np.allclose(shares, [1, 0])
    assert np.allclose(np.abs(points[:, 0]), 5 * np.abs(np.arange(5) - 2))


def test_what_has_no_agents_or_no_advisor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the world is deeprm"):
        agents.collect(FigureRequest(source="deeprm"))
    with pytest.raises(InputError, match="name runs with --runs"):
        advisors.collect_advisor(FigureRequest(source="panda-drift"))
    with pytest.raises(InputError, match="has no advisor"):
        advisors.collect_advisor(FigureRequest(runs=[run_of(tmp_path, "none")]))


def test_agents_may_act_behind_another_filter_but_a_tree_not_among_other_types_of_cores(
    tmp_path: Path,
) -> None:
    """Actors score what they see, whatever its number; a tree counts the types of cores."""
    (run,) = load_runs([Path(run_of(tmp_path, "tree"))], "argmax")
    narrow = load_config("panda-drift", ["task.world.observed=4", "task.world.held=2"])
    check_fits(run, narrow.task.world)
    other = load_config("panda-drift", ["task.world.nodes.core_type=[0,1,2]"])
    with pytest.raises(InputError, match="was trained for another world, where its network has"):
        check_fits(run, other.task.world)
