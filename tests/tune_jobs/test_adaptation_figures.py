"""Figures of adaptation: their numbers by hand, and what is drawn of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cluster_env.core.errors import InputError
from cluster_env.evaluation.intervals import Pooled, jobset_interval, two_level_interval
from tests.tune_jobs.drawing import run, texts
from tests.tune_jobs.untrained_scorers import FOMAML, ONE_TASK, make_scorer
from tune_jobs import figures
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.figures import adaptation, meta_curves
from tune_jobs.figures.adaptation_comparisons import (
    collect_differences,
    collect_headroom,
    draw_differences,
    draw_headroom,
)
from tune_jobs.figures.adaptation_gap import collect as collect_gap
from tune_jobs.recipes import learning_curves
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.runs.history import History
from tune_jobs.tables.frames import number, read_table, write_table

pytestmark = pytest.mark.rendered

RECORDED = Path(figures.__file__).parent / "recorded"
STEPS = (0, 1, 3)
TASKS, ADAPTATIONS = 6, 2
OBJECTIVES = ("slowdown", "makespan")
SEEDS = {"joint": 2, "FOMAML K=1": 3, "scratch": 1}


def ratio_of(method: str, seed: int, task: int, adaptation: int, step: int) -> float:
    """A made-up ratio: joint improves slowly, FOMAML fast, and makes task 5 worse."""
    start, gain = {"joint": (1.0, 0.01), "FOMAML K=1": (1.1, 0.1), "scratch": (2.0, 0.1)}[method]
    worse = 0.5 if (method, task) == ("FOMAML K=1", 5) and step else 0.0
    noise = 0.001 * (seed + 2 * adaptation) * (step > 0)
    return start - gain * step + 0.02 * task + worse + noise


def rows_of(method: str, seed: int, family: str = "objectives") -> list[dict[str, str | float]]:
    return [
        {
            **{"family": family, "method": method, "name": method, "trained_on": family},
            **{"meta_seed": seed, "task": task, "objective": OBJECTIVES[task % 2]},
            **{"seed": adaptation, "step": step, "episodes": 20 * step},
            **{"cost": 1.0, "best": 1.0, "utilization": 0.1 * task, "wait": 1.0 * step + seed},
            "ratio": ratio_of(method, seed, task, adaptation, step),
        }
        for task in range(TASKS)
        for adaptation in range(ADAPTATIONS)
        for step in STEPS
    ]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    for method, seeds in SEEDS.items():
        for seed in range(seeds):
            write_table(folder / "objectives" / f"{method[:5]}-{seed}.csv", rows_of(method, seed))
    heuristics = [
        {
            **{"family": "objectives", "objective": OBJECTIVES[task % 2], "task": task},
            **{"method": name, "policy": name, "best_heuristic": "sjf"},
            **{"ratio": value + 0.01 * task, "utilization": value / 10, "wait": 2.0 * task},
        }
        for name, value in (("hold", 0.95), ("random", 4.0), ("sjf", 1.0))
        for task in range(TASKS)
    ]
    write_table(folder / "objectives" / "heuristics.csv", heuristics)
    return folder


def made(name: str, rows: Path, out: Path) -> list[dict[str, str]]:
    run(name, "--rows", str(rows), "--out", str(out))
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return read_table(out / f"{name}.csv", ())


def ratios(method: str, step: int) -> np.ndarray:
    """What rows say, ``(seeds, tasks, adaptations)``."""
    shape = (SEEDS[method], TASKS, ADAPTATIONS)
    return np.reshape([ratio_of(method, *place, step) for place in np.ndindex(*shape)], shape)


def find(rows: list[dict[str, str]], **cells: object) -> dict[str, str]:
    (row,) = [r for r in rows if all(r[name] == str(value) for name, value in cells.items())]
    return row


def test_a_line_is_the_mean_over_runs_tasks_and_adaptations(rows: Path, tmp_path: Path) -> None:
    found = made("adaptation", rows, tmp_path / "out")
    table = ratios("FOMAML K=1", 3).mean(axis=2)
    row = find(found, method="FOMAML K=1", step=3)
    assert number(row, "value") == pytest.approx(table.mean())
    within = jobset_interval(Pooled.each(table.mean(axis=0)))
    wide = two_level_interval([table.mean(axis=1).tolist()], within, TASKS)
    assert number(row, "value_low") == pytest.approx(wide.low)
    assert number(row, "value_high") == pytest.approx(wide.high)
    assert (row["episodes"], row["seeds"], row["tasks"]) == ("60", "3", "6")
    assert number(row, "geometric") == pytest.approx(np.exp(np.log(ratios("FOMAML K=1", 3)).mean()))
    alone = find(found, method="scratch", step=1)
    assert number(alone, "value_low") < number(alone, "value") < number(alone, "value_high")


def test_what_a_cost_was_bought_with_stands_beside_it(rows: Path, tmp_path: Path) -> None:
    found = made("adaptation", rows, tmp_path / "out")
    row = find(found, method="joint", step=3)
    assert number(row, "utilization") == pytest.approx(0.1 * np.mean(range(TASKS)))
    assert number(row, "wait") == pytest.approx(3 + 0.5)  # two seeds
    assert number(find(found, method="hold"), "utilization") == pytest.approx(0.095)
    best = find(found, series="baseline")
    assert (best["value"], best["method"], best["tasks"]) == ("1.0", "best baseline", "6")
    assert [number(best, name) for name in ("utilization", "wait")] == pytest.approx([0.1, 5.0])
    head, _, *lines = markdown_of(tmp_path / "out" / "adaptation.csv").splitlines()[2:]
    titles = ["Method", "After 0 steps", "After 1 step", "After 3 steps"]
    assert head == f"| {' | '.join([*titles, 'Utilization', 'Mean wait (steps)'])} |"
    assert lines[-1] == "| best baseline | 1.000 |  |  | 10.0% | 5.0 |"
    assert lines[1].startswith("| joint, 2 x 2 | 1.050 [")
    assert lines[1].endswith("25.0% | 3.5 |")
    by_objective = made("adaptation-objectives", rows, tmp_path / "out")
    makespan = find(by_objective, series="baseline", objective="makespan")
    assert number(makespan, "wait") == pytest.approx(6.0)  # tasks 1, 3 and 5


def test_heuristics_are_baselines_of_their_own_world_alone(rows: Path, tmp_path: Path) -> None:
    heuristics = [
        {"family": "sites", "method": name, "task": 0, "ratio": 1.5, "baseline": baseline}
        for name, baseline in (("fcfs", 1), ("tetris", 0))
    ]
    write_table(rows / "sites" / "heuristics.csv", heuristics)
    write_table(rows / "sites" / "joint.csv", rows_of("joint", 0, "sites"))
    found = made("adaptation", rows, tmp_path)
    lines = {(row["family"], row["method"]) for row in found if row["series"] == "heuristic"}
    assert lines == {("objectives", "hold"), ("objectives", "random"), ("sites", "tetris")}


def test_a_panel_says_what_it_rests_on_and_what_lies_beyond_it(rows: Path, tmp_path: Path) -> None:
    made("adaptation", rows, tmp_path)
    said = " ".join(texts(adaptation.draw_by_family(tmp_path / "adaptation.csv")).split())
    assert "off the axis: scratch 2.05 to 1.75, random 4.0" in said
    assert "20 episodes each" in said
    assert "6 held-out tasks, 2 adaptations of each, 1 to 3 training seeds" in said


def test_objectives_have_lines_from_the_first_to_the_last_step(rows: Path, tmp_path: Path) -> None:
    found = made("adaptation-objectives", rows, tmp_path)
    (axes,) = adaptation.draw_objectives(tmp_path / "adaptation-objectives.csv").axes
    marks = [
        float(line.get_xdata()[0])  # type: ignore[index]
        for line in axes.get_lines()
        if line.get_marker() in ("o", "<", ">") and len(line.get_xdata()) == 1  # type: ignore[arg-type]
    ]
    for place, objective in enumerate(OBJECTIVES):
        mine = [row for row in found if (row["method"], row["objective"]) == ("joint", objective)]
        for step, row in zip(STEPS, mine, strict=True):
            mean = ratios("joint", step)[:, place::2].mean()
            assert (number(row, "value"), row["tasks"]) == (pytest.approx(mean), "3")
            if step in (STEPS[0], STEPS[-1]):
                assert any(mark == pytest.approx(mean) for mark in marks)


def test_the_win_rate_is_the_share_of_tasks_and_adaptations_at_or_below_the_baseline(
    rows: Path, tmp_path: Path
) -> None:
    found = made("adaptation-win-rate", rows, tmp_path)
    # Joint training begins at 1 + .02 x task: the first task alone is at most 1.005.
    row = find(found, method="joint", step=0)
    assert number(row, "value") == pytest.approx(1 / 6)
    assert number(row, "value_low") >= 0
    # After 3 steps FOMAML is at .8 + .02 x task, but for the task that it made worse.
    assert number(find(found, method="FOMAML K=1", step=3), "value") == pytest.approx(5 / 6)


def test_differences_are_in_pairs_of_tasks_and_joint_training_has_none(
    rows: Path, tmp_path: Path
) -> None:
    found = made("adaptation-differences", rows, tmp_path)
    method, joint = (ratios(name, 1).mean(axis=2) for name in ("FOMAML K=1", "joint"))
    row = find(found, method="FOMAML K=1", step=1, reference="joint")
    assert number(row, "difference") == pytest.approx(method.mean() - joint.mean())
    within = jobset_interval(Pooled.each(method.mean(axis=0) - joint.mean(axis=0)))
    means = [method.mean(axis=1).tolist(), joint.mean(axis=1).tolist()]
    wide = two_level_interval(means, within, TASKS)
    assert number(row, "difference_high") == pytest.approx(wide.high)
    logs = [np.log(ratios(name, 1)).mean() for name in ("FOMAML K=1", "joint")]
    assert number(row, "ratio") == pytest.approx(np.exp(logs[0] - logs[1]))
    assert number(row, "ratio_low") < number(row, "ratio") < number(row, "ratio_high")
    assert find(found, method="joint", step=1)["difference"] == ""
    # One of six tasks costs more than 1.05 times what it did without adaptation.
    assert number(
        find(found, method="FOMAML K=1", step=3, reference="joint"), "worse"
    ) == pytest.approx(1 / 6)
    assert number(find(found, method="joint", step=3), "worse") == 0
    over_joint, worse = draw_differences(tmp_path / "adaptation-differences.csv").axes
    assert [label.get_text() for label in over_joint.get_yticklabels()] == ["FOMAML K=1"]
    steps = [text.get_text() for text in over_joint.texts[:-1]]  # at the intervals; a note is last
    assert steps == ["0", "1", "3"]
    assert len(worse.get_yticklabels()) == len(SEEDS)


@pytest.mark.parametrize("ratio", [0.97, 0.5])
def test_axes_of_ratios_have_numbers_to_read_them_by(
    rows: Path, tmp_path: Path, ratio: float
) -> None:
    table = tmp_path / "adaptation-differences.csv"
    ends = {"ratio": ratio, "ratio_low": ratio - 0.02, "ratio_high": ratio**-2 + 0.02}
    found = made("adaptation-differences", rows, tmp_path)
    write_table(table, [{**row, **(ends if row["ratio"] else {})} for row in found])
    figure = draw_differences(table)
    figure.canvas.draw()
    for axes in figure.axes[::2]:
        low, high = axes.get_xlim()
        shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert 3 <= len(shown) <= 8
        assert len(shown) == len({f"{tick:g}" for tick in shown})


def test_differences_from_a_policy_that_is_told_have_a_panel_of_their_own(
    rows: Path, tmp_path: Path
) -> None:
    told = [{**row, "method": "conditioned"} for row in rows_of("joint", 0)]
    write_table(rows / "objectives" / "conditioned.csv", told)
    found = made("adaptation-differences", rows, tmp_path)
    method = ratios("FOMAML K=1", 3).mean(axis=2)
    expected = method.mean() - ratios("joint", 3)[0].mean()
    row = find(found, method="FOMAML K=1", step=3, reference="conditioned")
    assert number(row, "difference") == pytest.approx(expected)
    assert find(found, method="conditioned", step=3, reference="joint")["difference"]
    assert find(found, method="conditioned", step=3, reference="scratch")["ratio"]
    assert not [row for row in found if row["method"] == row["reference"] == "scratch"]
    assert {row["method"] for row in found if row["reference"] == "conditioned"} == {
        "conditioned",
        "FOMAML K=1",
        "scratch",
    }
    said = texts(draw_differences(tmp_path / "adaptation-differences.csv"))
    assert "Adaptation relative to joint training and the conditioned policy" in said


def test_the_recorded_differences_are_no_taller_than_a_page() -> None:
    assert draw_differences(RECORDED / "adaptation-differences.csv").get_size_inches()[1] < 11


def test_rows_that_do_not_belong_together_are_refused(rows: Path) -> None:
    request = FigureRequest(rows=[rows])
    write_table(rows / "objectives" / "again.csv", rows_of("joint", 1))
    with pytest.raises(InputError, match="two runs of the method 'joint' with the seed 1"):
        adaptation.collect_by_family(request)
    write_table(rows / "objectives" / "again.csv", rows_of("joint", 7)[:-1])
    with pytest.raises(InputError, match="not measured on the same tasks, seeds and steps"):
        adaptation.collect_by_family(request)
    (rows / "objectives" / "again.csv").unlink()
    with pytest.raises(InputError, match="no specialists"):
        collect_headroom(request)
    for file in (rows / "objectives").glob("joint*"):
        file.unlink()
    with pytest.raises(InputError, match="no rows of joint training"):
        collect_differences(request)


def test_methods_of_one_name_are_told_apart_by_the_name_of_their_config(rows: Path) -> None:
    longer = [{**row, "name": "joint-long"} for row in rows_of("joint", 0)]
    write_table(rows / "objectives" / "long.csv", longer)
    methods = {row["method"] for row in adaptation.collect_by_family(FigureRequest(rows=[rows]))}
    assert {"joint (joint)", "joint (joint-long)", "FOMAML K=1"} <= methods


def test_without_rows_each_figure_says_where_they_come_from(tmp_path: Path) -> None:
    for collect in (
        adaptation.collect_by_family,
        adaptation.collect_win_rates,
        collect_differences,
    ):
        with pytest.raises(InputError, match="give the folder of metasched study with --rows"):
            collect(FigureRequest())
    with pytest.raises(InputError, match=r"there is no folder .*nowhere of rows"):
        run("adaptation", "--rows", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="there are no rows to draw"):
        adaptation.collect_by_family(FigureRequest(rows=[tmp_path]))
    single = [{**row, "objective": "slowdown"} for row in rows_of("joint", 0)]
    write_table(tmp_path / "one.csv", single)
    with pytest.raises(InputError, match="a single objective"):
        adaptation.collect_by_objective(FigureRequest(rows=[tmp_path]))
    with pytest.raises(InputError, match="joint training alone"):
        collect_differences(FigureRequest(rows=[tmp_path]))


def test_meta_curves_are_what_runs_recorded(tmp_path: Path) -> None:
    for seed in range(2):
        folder = make_scorer(tmp_path / f"fomaml-{seed}", *FOMAML, seed=seed)
        history = History(folder / "metrics.csv")
        for iteration in range(1, 61):
            history.append(
                iteration,
                {
                    "meta/return_before": -1.2 + 0.001 * iteration,
                    "meta/return_after": -1.0 + 0.002 * iteration + 0.1 * seed,
                    "train/entropy": 0.5,
                    "meta/collapsed": float(iteration == 30),
                },
            )
    run("meta-curves", "--runs", f"{tmp_path}/fomaml-*", "--out", str(tmp_path / "out"))
    table = tmp_path / "out" / "meta-curves.csv"
    found = read_table(table, meta_curves.TEXTS)
    assert len(found) == 120
    assert number(found[10], "after") == pytest.approx(-1.0 + 0.002 * 11)
    figure = meta_curves.draw_curves_of_runs(table)
    left, right = figure.axes
    baseline, before, after = [line for line in left.lines if len(line.get_xdata()) > 1]
    assert list(baseline.get_ydata()) == [-1, -1]  # returns are costs, and so is the baseline's
    assert "K: inner steps; FOMAML" in texts(figure).replace("\n", " ")
    # 60 iterations in 25 parts: the first is the mean of the first 3, over both seeds.
    assert after.get_ydata()[0] == pytest.approx(-1.0 + 0.002 * 2 + 0.05)
    assert before.get_ydata()[0] == pytest.approx(-1.2 + 0.001 * 2)
    assert [line.get_xdata()[0] for line in right.lines if len(line.get_xdata()) == 1] == [30, 30]
    plain = make_scorer(tmp_path / "alone", *ONE_TASK)
    with pytest.raises(InputError, match="no run of the algorithm maml"):
        meta_curves.collect_curves(FigureRequest(runs=[str(plain)]))
    with pytest.raises(InputError, match="figure meta-curves draws its curves"):
        learning_curves.collect(FigureRequest(runs=[str(tmp_path / "fomaml-0")]))


def test_headroom_is_the_share_of_the_way_to_the_specialists(rows: Path, tmp_path: Path) -> None:
    specialists = [0.7, 0.8, 0.9]
    write_table(
        rows / "objectives" / "specialists.csv",
        [
            {"task": task, "ratio": ratio, "utilization": 0.1 * task, "wait": 7.0}
            for task, ratio in enumerate(specialists)
        ],
    )
    found = made("headroom", rows, tmp_path)
    assert found[0]["method"] == "specialist"
    assert number(found[0], "value") == pytest.approx(0.8)
    before = np.mean([ratio_of("joint", 0, task, 0, 0) for task in range(3)])
    for row in found[1:]:
        method, step = row["method"], int(row["step"])
        after = ratios(method, step)[:, :3].mean()
        assert number(row, "value") == pytest.approx(after)
        assert number(row, "closed") == pytest.approx((before - after) / (before - 0.8))
        assert row["tasks"] == "3"
    # Of the three tasks that have specialists alone, whose utilization is 0, 10 and 20 %.
    assert {round(number(row, "utilization"), 9) for row in found} == {0.1}
    line = markdown_of(tmp_path / "headroom.csv").splitlines()[4]
    assert line == "| specialist | 0 | 0.800 [0.700, 0.900] | 100.0% | 10.0% | 7.0 |"
    said = texts(draw_headroom(tmp_path / "headroom.csv"))
    assert all(name in said for name in ("FOMAML K=1", "joint", "specialists"))
    assert "scratch" not in said


def test_more_rules_than_lines_can_be_told_apart_have_none() -> None:
    def rows(count: int) -> pd.DataFrame:
        one = {"family": "sites", "ratio": "1.5", "baseline": "0"}
        return pd.DataFrame([{**one, "method": f"rule-{k}"} for k in range(count)])

    assert len(adaptation.rows_of_heuristics(rows(8))) == 8
    assert adaptation.rows_of_heuristics(rows(9)) == []


def test_what_is_hidden_is_measured_by_the_same_rule_of_each_task(tmp_path: Path) -> None:
    """Two tasks; where more is known, the best rule costs half, and a policy a quarter."""
    folder = tmp_path / "rows"
    for family, scale in (("users", 1.0), ("users-told", 0.5)):
        rules = [
            {
                **{"family": family, "objective": "slowdown", "task": task, "method": name},
                **{"policy": name, "cost": scale * cost, "best": 8.0 * scale * (1 + task)},
                **{"best_heuristic": "saf", "baseline": named, "ratio": 1.0, "wait": 3.0},
            }
            for name, costs, named in (
                ("saf", (8.0, 32.0), "1"),
                ("sjf", (16.0, 16.0), "1"),
                ("f4", (1.0, 1.0), "0"),  # no baseline
            )
            for task, cost in enumerate(costs)
        ]
        write_table(folder / family / "heuristics.csv", rules)
        policy = [
            {
                **{"family": family, "method": "joint", "name": "joint", "trained_on": "users"},
                **{"meta_seed": 0, "task": task, "objective": "slowdown", "seed": 0, "step": 0},
                **{"episodes": 0, "cost": 0.0, "best": 0.0, "ratio": 0.5, "wait": 1.0},
            }
            for task in range(2)
        ]
        write_table(folder / family / "joint-0.csv", policy)
    rows = made("adaptation-gap", folder, tmp_path)
    found = {(row["family"], row["method"]): number(row, "ratio") for row in rows}
    # By hand: sjf costs 16 / 8 and 16 / 16, saf 8 / 8 and 32 / 16.
    assert found == pytest.approx(
        {
            ("users", "saf"): 2**0.5,
            ("users", "joint"): 0.5,
            ("users-told", "saf"): 2**-0.5,
            ("users-told", "joint"): 0.25,
        }
    )
    (folder / "users" / "heuristics.csv").rename(tmp_path / "rules.csv")
    (folder / "users-told" / "heuristics.csv").rename(tmp_path / "others.csv")
    with pytest.raises(InputError, match="no costs of rules"):
        collect_gap(FigureRequest(rows=[folder]))
    (tmp_path / "rules.csv").rename(folder / "users" / "heuristics.csv")
    (tmp_path / "others.csv").rename(folder / "users-told" / "heuristics.csv")
    (folder / "users-told").rename(folder / "others")
    for file in (folder / "others").glob("*.csv"):
        file.write_text(file.read_text().replace("users-told", "others"))
    with pytest.raises(InputError, match="have different tasks"):
        collect_gap(FigureRequest(rows=[folder]))
