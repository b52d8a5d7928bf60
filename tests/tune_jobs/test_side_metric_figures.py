"""Figures of ratios to the best rule, sequence by sequence."""

from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric
from cluster_env.evaluation.intervals import seeds_interval
from cluster_env.evaluation.metrics import episode_means
from cluster_env.worlds import get_heuristic
from rllib_configs.config.loading import load_config
from tests.tune_jobs.drawing import all_texts
from tune_jobs.figures import ratios as drawn_ratios
from tune_jobs.recipes import ratios
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.recipes.scenarios import Scenario
from tune_jobs.tables.frames import write_table

pytestmark = pytest.mark.rendered

SMALL = {"world.processors": 64, "workload.jobs": 40, "workload.load": 1.2}
REQUEST = FigureRequest(runs=["hpc-order"], num_jobsets=3, decode="argmax")


def test_ratios_are_geometric_means_over_sequences_and_drawn(tmp_path: Path) -> None:
    here_and_anywhere = [
        Scenario("here", "hpc-smoke", SMALL),
        Scenario("anywhere", "hpc-smoke", SMALL, "any-site"),
    ]
    figure = ratios.Ratios("Small", lambda request: iter(here_and_anywhere))
    rows = figure.collect(REQUEST)
    by_place = {
        scenario.name: {str(row["key"]): row for row in rows if row["place"] == scenario.name}
        for scenario in here_and_anywhere
    }
    for found in by_place.values():
        best = found[str(found["saf"]["best_rule"])]
        assert (best["ratio"], best["ratio_low"], best["better"]) == (1, 1, 0)
        assert found["hpc-order"]["learned"]
        assert 0 < float(found["hpc-order"]["ratio_low"]) <= float(found["fcfs"]["ratio_high"])
    here = by_place["here"]
    task = load_config("hpc-smoke", [f"task.{key}={value}" for key, value in SMALL.items()])
    built = task.task.build()
    jobsets = built.jobsets(Split.HELD_OUT, range(3))
    one, other = (
        episode_means(
            get_metric("bounded_slowdown"),
            evaluate(get_heuristic(str(name), built.world), jobsets, built.world),
        )
        for name in ("fcfs", here["saf"]["best_rule"])
    )
    assert here["fcfs"]["ratio"] == pytest.approx(np.exp(np.log(one / other).mean()))
    assert by_place["anywhere"]["fcfs"]["bounded_slowdown"] != here["fcfs"]["bounded_slowdown"]
    write_table(tmp_path / "it.csv", rows)
    shown = all_texts(drawn_ratios.draw(tmp_path / "it.csv"))
    assert sum(text.startswith(("here: 3 seq", "anywhere: 3 seq")) for text in shown) == 2


def test_scenarios_are_sizes_and_families() -> None:
    sizes = [scenario.name for scenario in ratios.SIZES.scenarios(REQUEST)]
    assert sizes == [f"{size} processors" for size in ("64", "1,024", "8,192", "163,840")]
    assert len(list(ratios.FAMILIES.scenarios(REQUEST))) == 5


def test_training_seeds_make_one_line_with_an_interval_over_both() -> None:
    differences = np.log(np.array([[0.5, 0.25, 0.5], [0.25, 0.5, 0.5]]))
    one = seeds_interval(differences)
    assert one.value == pytest.approx(differences.mean())
    assert one.over == "seeds and jobsets"
    assert seeds_interval(differences[:1]).over == "jobsets"
