"""Figures of cost against side metrics, and of ratios to the best rule, sequence by sequence."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric
from cluster_env.evaluation.metrics import episode_means
from cluster_env.worlds import get_heuristic, get_spec
from rllib_configs.loading import load_config
from tune_jobs.figures import pareto, ratios
from tune_jobs.figures.places import Exhibit, Place
from tune_jobs.figures.registry import FIGURES, FigureRequest
from tune_jobs.terminal.tables import write_table

SMALL = {"world.processors": 64, "workload.jobs": 40, "workload.load": 1.2}
REQUEST = FigureRequest(runs=["hpc-universal"], num_jobsets=3, decode="argmax")


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]  # type: ignore[attr-defined]


def test_the_front_holds_whom_no_other_beats_in_both_respects() -> None:
    points = {"a": (0.9, 50), "b": (0.8, 60), "c": (0.7, 20), "d": (0.7, 30), "e": (0.2, 20)}
    rows = [
        {"key": key, "utilization": str(use), "slowdown": str(cost)}
        for key, (use, cost) in points.items()
    ]
    assert [row["key"] for row in pareto.front(rows, "slowdown", "utilization")] == ["a", "c"]
    swapped = [{**row, "wait": row["utilization"]} for row in rows]  # of which less is better
    assert [row["key"] for row in pareto.front(swapped, "slowdown", "wait")] == ["e"]


def test_every_rule_and_policy_stands_in_cost_against_side_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exhibit = Exhibit("Small", lambda request: iter([Place("here", "hpc-smoke", SMALL)]))
    monkeypatch.setattr(pareto, "EXHIBIT", exhibit)
    monkeypatch.setattr(get_spec("hpc").heuristics, "names", lambda: ("saf", "reserve"))
    rows = pareto.collect(REQUEST)
    assert [row["key"] for row in rows] == ["saf", "reserve", "hpc-universal"]
    write_table(tmp_path / "it.csv", rows)
    shown = texts(pareto.draw(tmp_path / "it.csv"))
    assert all(shown.count(str(row["key"])) == len(pareto.SIDE_METRICS) for row in rows)
    assert "here: 3 jobsets" in shown


def test_ratios_are_geometric_means_over_sequences_and_drawn(tmp_path: Path) -> None:
    places = [Place("here", "hpc-smoke", SMALL), Place("anywhere", "hpc-smoke", SMALL, "any-site")]
    figure = ratios.Ratios("Small", lambda request: iter(places))
    rows = figure.collect(REQUEST)
    by_place = {
        place.name: {str(row["key"]): row for row in rows if row["place"] == place.name}
        for place in places
    }
    for found in by_place.values():
        best = found[str(found["saf"]["best_rule"])]
        assert (best["ratio"], best["ratio_low"], best["better"]) == (1, 1, 0)
        assert found["hpc-universal"]["learned"]
        assert 0 < float(found["hpc-universal"]["ratio_low"]) < float(found["fcfs"]["ratio_high"])
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
    shown = texts(figure.draw(tmp_path / "it.csv"))
    assert sum(text.startswith(("here: 3 seq", "anywhere: 3 seq")) for text in shown) == 2


def test_places_are_sizes_families_and_logs() -> None:
    sizes = [place.name for place in ratios.SIZES.places(REQUEST)]
    assert sizes == [f"{size} processors" for size in ("64", "1,024", "8,192", "163,840")]
    assert len(list(ratios.FAMILIES.places(REQUEST))) == 5
    for name in ("hpc-pareto", "hpc-families", "hpc-sizes"):
        assert {"collect", "draw"} <= set(dir(FIGURES.get(name).load()))


def test_training_seeds_make_one_line_with_an_interval_over_both() -> None:
    differences = np.log(np.array([[0.5, 0.25, 0.5], [0.25, 0.5, 0.5]]))
    one = ratios._paired(differences)
    assert one.value == pytest.approx(differences.mean())
    assert one.over == "seeds and jobsets"
    assert ratios._paired(differences[:1]).over == "jobsets"
