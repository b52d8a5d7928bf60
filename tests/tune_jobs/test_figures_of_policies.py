"""Figures 5 and 7 of DeepRM, and win rates: what is in their tables, and what is drawn of it."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.evaluation import METRICS, evaluate, summarize
from cluster_env.evaluation.withholding import find_withheld
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import World, get_heuristic, get_spec
from rllib_configs.config.loading import load_config
from tests.tune_jobs.drawing import run, texts
from tests.tune_jobs.untrained_runs import SMALL_TASK, make_run
from tune_jobs.experiments.tables import markdown_of
from tune_jobs.figures import comparison, objectives, withheld_jobs
from tune_jobs.measuring.trained_runs import find_runs, group_by_experiment, load_runs
from tune_jobs.tables.frames import number, read_table

JOBSETS = 8
RECORDED = Path(objectives.__file__).parent / "recorded"
SIDE_METRICS = ("utilization", "completion_time", "wait", "longest_wait", "slowdown_small")
HEURISTICS = get_spec("deeprm").heuristics.names()
BASELINES = get_spec("deeprm").baselines

pytestmark = [pytest.mark.usefixtures("tuned_on_few"), pytest.mark.rendered]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds for slowdown, one each for makespan, utilization and a mixture."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        make_run(folder / f"slowdown-{seed}", "name=small", seed=seed)
    for name in ("makespan", "utilization"):
        make_run(folder / name, "name=small", f"task.objective={name}")
    make_run(folder / "mixed", "name=small", "task.objective={slowdown: 1, makespan: 0.5}")
    return folder


def held_out(*overrides: str) -> tuple[World, list[JobSet]]:
    """The world of the figures, and their jobsets."""
    task = load_config("deeprm", [*SMALL_TASK, *overrides]).task
    jobsets = sample_jobsets(task.build_workload(), 0, Split.HELD_OUT, range(JOBSETS))
    return task.world, jobsets


def made(name: str, out: Path, *args: str) -> Path:
    run(name, "--jobsets", str(JOBSETS), "--out", str(out), *args)
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return out / f"{name}.csv"


@pytest.fixture(scope="module")
def fig5(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("deeprm-fig5", tmp_path_factory.mktemp("fig5"), "--runs", f"{runs}/*")


@pytest.fixture(scope="module")
def fig7(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("deeprm-fig7", tmp_path_factory.mktemp("fig7"), "--runs", f"{runs}/slowdown-*")


@pytest.fixture(scope="module")
def shares(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("win-rate", tmp_path_factory.mktemp("shares"), "--runs", f"{runs}/slowdown-*")


def test_fig5_has_a_panel_for_every_objective_that_is_a_metric(fig5: Path) -> None:
    rows = read_table(fig5, objectives.COLUMNS)
    panels = ("slowdown", "completion_time", "makespan", "utilization")
    # In the order of the panels; the mixture has none, and comes last.
    learned = ("small-slowdown", "small-makespan", "small-utilization", "small-mixture")
    assert [(row["metric"], row["key"]) for row in rows] == [
        (metric, key) for metric in panels for key in (*HEURISTICS, *learned)
    ]
    trained_for = [row["trained_for"] for row in rows[len(HEURISTICS) :][:4]]
    assert trained_for == [*panels[:1], *panels[2:], "1 slowdown + 0.5 makespan"]


def test_fig5_compares_with_the_best_heuristic_of_each_metric(fig5: Path) -> None:
    rows = read_table(fig5, objectives.COLUMNS)
    for metric in dict.fromkeys(row["metric"] for row in rows):
        panel = [row for row in rows if row["metric"] == metric]
        rank = METRICS.get(metric).rank
        ranked = sorted(panel, key=lambda row: rank(number(row, "value")))
        heuristics = [row for row in ranked if row["learned"] == "False"]
        assert {row["reference"] for row in panel} == {heuristics[0]["policy"]}
        best = number(heuristics[0], "value")
        for row in panel:
            assert number(row, "ratio") == pytest.approx(number(row, "value") / best)
        assert [row["key"] for row in panel if row["best"] == "True"] == [ranked[0]["key"]]
    group = next(row for row in rows if row["key"] == "small-slowdown")
    assert group["interval_over"] == "seeds and jobsets"
    assert number(group, "ratio_low") < number(group, "ratio") < number(group, "ratio_high")


def test_fig5_says_what_policies_were_trained_for_and_draws_their_numbers(fig5: Path) -> None:
    figure = objectives.draw(fig5)
    shown = texts(figure)
    assert "small-slowdown\n2\N{NO-BREAK SPACE}seeds" in shown
    assert "small-mixture\nfor 1 slowdown + 0.5" in shown
    assert f"{JOBSETS} unseen jobsets, arrival window 12 steps, rules of the paper" in shown
    assert "higher" in shown
    rows = read_table(fig5, objectives.COLUMNS)
    (image,) = figure.axes[0].get_images()
    colors = image.get_array()
    assert colors is not None
    assert colors.shape == (len(rows) // 4, 4)
    # In units of the logarithm of the best heuristic's mean, and 0 for that heuristic itself.
    sjf = next(row for row in rows if row["key"] == "sjf")
    expected = np.clip(np.log(number(sjf, "ratio")), -np.log(2.5), np.log(2.5))
    assert colors[HEURISTICS.index("sjf"), 0] == pytest.approx(expected)
    for column, metric in enumerate(("slowdown", "completion_time", "makespan", "utilization")):
        panel = [row for row in rows if row["metric"] == metric]
        best = next(place for place, row in enumerate(panel) if row["policy"] == row["reference"])
        assert colors[best, column] == 0


def test_heads_of_recorded_columns_leave_each_other_alone() -> None:
    figure = objectives.draw(RECORDED / "deeprm-fig5.csv")
    figure.canvas.draw()
    heads = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(heads) == 9
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(heads))


def test_fig5_without_runs_has_the_two_objectives_of_the_paper(tmp_path: Path) -> None:
    small = [arg for text in SMALL_TASK for arg in ("--set", text)]
    rows = read_table(made("deeprm-fig5", tmp_path, *small), objectives.COLUMNS)
    assert list(dict.fromkeys(row["metric"] for row in rows)) == ["slowdown", "completion_time"]
    assert len(rows) == 2 * len(HEURISTICS)


def test_runs_that_differ_in_their_objective_are_named_by_it(runs: Path) -> None:
    groups = group_by_experiment(load_runs(find_runs([f"{runs}/*"]), "sample"))
    sizes = {key.removeprefix("small-"): len(group) for key, group in groups}
    assert sizes == {"makespan": 1, "mixture": 1, "slowdown": 2, "utilization": 1}


def test_fig7_holds_what_was_withheld_by_length(fig7: Path) -> None:
    world, jobsets = held_out()
    rows = read_table(fig7, withheld_jobs.COLUMNS)
    for key in ("sjf", "hold"):
        mine = [row for row in rows if row["key"] == key]
        spec = mine[0]["policy"].replace("*(", ":").replace(")", "")
        schedule = evaluate(get_heuristic(spec, world), jobsets, world)
        found = find_withheld(schedule)
        lengths = sorted(set(schedule.duration.tolist()))
        assert [row["length"] for row in mine] == ["all", *map(str, lengths)]
        holding = found.holding_steps.sum() / schedule.end.sum()
        assert number(mine[0], "holding") == pytest.approx(holding)
        for row, length in zip(mine[1:], lengths, strict=True):
            of = schedule.duration == length
            held = of & found.withheld
            assert number(row, "num_jobs") == of.sum()
            assert number(row, "slowdown") == pytest.approx(schedule.slowdown[of].mean())
            assert number(row, "withheld") == pytest.approx(found.withheld[of].mean())
            waited = found.waited[held].mean() if held.any() else np.nan
            assert number(row, "waited") == pytest.approx(waited, nan_ok=True)
    over = {row["interval_over"] for row in rows if row["learned"] == "True"}
    assert over == {"seeds and jobsets"}


def test_fig7_counts_the_jobs_of_steady_operation_alone(runs: Path, tmp_path: Path) -> None:
    table = made("deeprm-fig7", tmp_path, "--runs", f"{runs}/slowdown-0", "--warmup", "4")
    rows = read_table(table, withheld_jobs.COLUMNS)
    _, jobsets = held_out()
    counted = sum(int(np.sum((one.arrival >= 4) & (one.arrival < 8))) for one in jobsets)
    assert number(rows[0], "num_jobs") == counted
    assert "jobs that arrive in steps 4 to 7 of 12" in texts(withheld_jobs.draw(table))


def test_fig7_draws_its_numbers_and_joins_no_lengths_that_are_far_apart(fig7: Path) -> None:
    figure = withheld_jobs.draw(fig7)
    rows = read_table(fig7, withheld_jobs.COLUMNS)
    of_sjf = [row for row in rows if row["key"] == "sjf"]
    sjf = [number(row, "slowdown") for row in of_sjf if row["length"] != "all"]
    line = figure.axes[0].get_lines()[0]
    assert str(line.get_label()).splitlines()[0] == "sjf"
    assert np.array_equal(line.get_ydata(), sjf)
    assert "small\n(trained at 70%, 2 seeds)" in texts(figure)
    recorded = withheld_jobs.draw(RECORDED / "deeprm-fig7.csv").axes[0].get_lines()[0]
    lengths = np.asarray(recorded.get_xdata())
    assert np.array_equal(lengths, [1, 2, 3, np.nan, *range(10, 16)], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "number_shown", "of"),
    [
        ("fig5", "Over the best heuristic", {}),
        ("fig7", "Jobs delayed although they fit", {"length": "all"}),
    ],
)
def test_the_price_of_each_policy_stands_beside_its_numbers(
    name: str, number_shown: str, of: dict[str, str], request: pytest.FixtureRequest
) -> None:
    table = request.getfixturevalue(name)
    row = next(row for row in read_table(table, SIDE_METRICS) if {**row, **of, "key": "sjf"} == row)
    world, jobsets = held_out()
    means = summarize(evaluate(get_heuristic("sjf", world), jobsets, world)).means
    shown = [number(row, one) for one in SIDE_METRICS]
    assert shown == pytest.approx([means[one] for one in SIDE_METRICS])
    page = markdown_of(table)
    assert number_shown in page
    (line, *_) = (line for line in page.splitlines() if line.startswith("| sjf |"))
    assert f"| {means['utilization']:.1%} |" in line
    assert f"| {means['wait']:.1f} | {means['longest_wait']:.1f} |" in line
    module = {"fig5": objectives, "fig7": withheld_jobs}[name]
    assert f"{means['longest_wait']:.1f}" in texts(module.draw(table))


def test_win_rate_holds_both_shares_with_intervals(shares: Path) -> None:
    rows = comparison.read_policies(shares, comparison.COLUMNS, comparison.SHARES)
    # Somebody is the best of the baselines on each jobset.
    assert (rows[rows["key"].isin(BASELINES)].groupby("load")["win_rate"].sum() >= 1).all()
    for column in comparison.SHARES:
        low, value, high = (rows[f"{column}{end}"] for end in ("_low", "", "_high"))
        assert ((low - 1e-12 <= value) & (value <= high + 1e-12)).all()
    assert ((rows["win_rate_low"] >= 0) & (rows["win_rate_high"] <= 1)).all()


def test_win_rates_are_drawn_and_stand_on_the_page_with_their_price(shares: Path) -> None:
    figure = comparison.draw_win_rate(shares)
    rows = read_table(shares, (*SIDE_METRICS, *comparison.SHARES))
    of_sjf = [row for row in rows if row["key"] == "sjf"]
    for axes, column in zip(figure.axes, comparison.SHARES, strict=True):
        sjf = [number(row, column) for row in of_sjf]
        assert any(np.array_equal(line.get_ydata(), sjf) for line in axes.get_lines())
    shown = texts(figure)
    assert "neither sjf, packer nor tetris has a lower mean slowdown" in shown
    assert f"{JOBSETS} unseen jobsets a load" in shown
    blocks = markdown_of(shares).split("\n\n")
    assert len(blocks) == 2 * len({row["load"] for row in rows})
    line = next(line for line in blocks[1].splitlines() if line.startswith("| sjf |"))
    assert f"| {number(of_sjf[0], 'win_rate'):.1%} [" in line
    assert f"| {number(of_sjf[0], 'utilization'):.1%} |" in line


def test_win_rate_is_that_of_the_evaluation(shares: Path) -> None:
    rows = read_table(shares, comparison.COLUMNS)
    at = {row["key"]: row for row in rows if row["load"] == "0.7"}
    world, jobsets = held_out("task.workload.load=0.7")

    def means(key: str) -> np.ndarray:
        spec = at[key]["policy"].replace("*(", ":").replace(")", "")
        schedule = evaluate(get_heuristic(spec, world), jobsets, world)
        return summarize(schedule).rows("slowdown")

    best = np.min([means(key) for key in BASELINES], axis=0)
    jobs = np.isfinite(best)
    for key in ("random", "hold", "packer"):
        share = np.mean(means(key)[jobs] <= best[jobs] + 1e-9)
        assert number(at[key], "win_rate") == pytest.approx(share)


@pytest.mark.parametrize("name", ["deeprm-fig5", "deeprm-fig7", "win-rate"])
def test_a_warm_up_that_leaves_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="a warm-up of 25 steps is left out at both ends"):
        run(name, "--warmup", "25", "--jobsets", "2")
