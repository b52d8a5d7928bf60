"""Figures: collected into a CSV file, drawn from it alone, saying what they rest on."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds import WORLDS, get_spec
from rllib_configs.config.loading import load_config
from tests.tune_jobs.drawing import run, texts
from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import cli
from tune_jobs.figures import FIGURES, comparison, learning_curves
from tune_jobs.figures.registry import OPTIONS, function_at
from tune_jobs.figures.style import color_of, marker_of, spread
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.policy_specs import heuristic_spec
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.recipes.comparison import VALUES_OF
from tune_jobs.recipes.learning_curves import TEXTS, heuristics_of
from tune_jobs.recipes.request import FigureRequest
from tune_jobs.tables.frames import number, read_frame, read_table, write_table

HEURISTICS = get_spec("deeprm").heuristics.names()

pytestmark = [pytest.mark.usefixtures("tuned_on_few"), pytest.mark.rendered]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of one experiment."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(2):
        make_run(folder / f"small-s{seed}", "name=small", seed=seed, iterations=6 - seed)
    return folder


@pytest.fixture(scope="module")
def fig4(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fig4")
    run("deeprm-fig4", "--runs", f"{runs}/*", "--jobsets", "6", "--out", str(out))
    return out


@pytest.fixture(scope="module")
def fig6(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fig6")
    run("learning-curves", "--runs", f"{runs}/*", "--out", str(out))
    return out


def test_all_figures_are_listed_with_what_they_show() -> None:
    listed = run().stdout
    for name in FIGURES.names():
        assert name in listed
        kind = FIGURES.get(name)
        assert callable(function_at(f"tune_jobs.{kind.rows}", "collect"))
        assert callable(function_at(f"tune_jobs.figures.{kind.drawing}", "draw"))


GIVEN = {
    **{"runs": "no-such-run", "rows": "no-such", "trace": "no-such.swf", "at": "0.5"},
    **{"config": "deeprm", "set": "seed=1", "world": "50", "warmup": "3", "limit": "wait=1"},
    **{"jobsets": "1000", "episodes": "1", "seed": "0", "decode": "sample", "time-limit": "12"},
    "runners": "2",
}
"""An option each, many with the value that it has by default."""


@pytest.mark.usefixtures("as_in_plans")
@pytest.mark.parametrize("name", FIGURES.names())
def test_a_figure_takes_the_options_that_it_uses_and_refuses_others(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FigureRequest] = []

    def make(_: str, request: FigureRequest, *__: object) -> tuple[str, str]:
        made.append(request)
        return "image", "table"

    monkeypatch.setattr("tune_jobs.figures.drawing.make_figure", make)
    words = {option: "--window" if option == "world" else f"--{option}" for option in OPTIONS}
    used = FIGURES.get(name).options
    run(name, *(word for option in used for word in (words[option], GIVEN[option])))
    assert len(made) == 1
    assert all(getattr(made[0], OPTIONS[option]) not in (None, (), {}) for option in used)
    refused = [option for option in OPTIONS if option not in used]
    shown = ", ".join(words[option] for option in refused)
    others = [word for option in refused for word in (words[option], GIVEN[option])]
    with pytest.raises(InputError, match=f"the figure {name} does not use {shown}; it uses --"):
        run(name, *others)
    refused = [option for option in refused if option != "rows"]
    shown = ", ".join(words[option] for option in refused)
    others = [word for option in refused for word in (words[option], GIVEN[option])]
    with pytest.raises(InputError, match=f"draws what is recorded, so leave out {shown}$"):
        run(name, *others, "--rows", "some.csv")
    assert len(made) == 1


def test_all_that_a_figure_does_not_use_is_named_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["figure", "utility-fig2", "--runs", "no-such-run", "--rows", "no-such"]
    words += ["--decode", "argmax", "--jobsets", "2"]
    assert cli.run(cli.metasched, words) == 2
    assert (
        "the figure utility-fig2 does not use --runs, --rows, --decode; "
        "it uses --config, --set, options of the world, --jobsets, --seed"
    ) in capsys.readouterr().err


def test_runs_may_say_where_a_figure_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tune_jobs.figures.drawing.make_figure", lambda *_: ("image", "table"))
    for words in (["adaptation"], ["deeprm-fig4", "--rows", "some.csv"]):
        with pytest.raises(InputError, match="no run directory matches"):
            run(*words, "--runs", "no/such/*", "--track")


def test_fig4_holds_every_policy_at_every_load(fig4: Path) -> None:
    rows = read_table(fig4 / "deeprm-fig4.csv", comparison.COLUMNS)
    keys = [*HEURISTICS, "small"]
    assert [(number(row, "load"), row["key"]) for row in rows] == [
        (load, key) for load in VALUES_OF["deeprm"][:6] for key in keys
    ]
    # 110 % is the first that this workload cannot reach; what was used instead is said.
    assert number(rows[-1], "load") == 1.1
    assert number(rows[-1], "load_used") < 1.1
    assert number(rows[-1], "arrival_rate") == pytest.approx(1.0)
    assert (fig4 / "deeprm-fig4.png").read_bytes().startswith(b"\x89PNG")


def test_fig4_draws_the_numbers_of_its_table_and_says_what_it_rests_on(fig4: Path) -> None:
    figure = comparison.draw(fig4 / "deeprm-fig4.csv")
    shown = texts(figure)
    assert "6 unseen jobsets a load, arrival window 12 steps, rules of the paper" in shown
    assert "small\n(trained at 70%, 2 seeds)" in shown
    rows = read_table(fig4 / "deeprm-fig4.csv", comparison.COLUMNS)
    used = number(rows[-1], "load_used")
    assert f"load (%); 110% is impossible, so {used:.0%} is shown" in shown
    expected = [number(row, "slowdown") for row in rows if row["key"] == "sjf"]
    assert any(np.array_equal(line.get_ydata(), expected) for line in figure.axes[0].get_lines())


def test_one_policy_that_is_far_away_hides_no_interval_and_no_text_crosses_a_side(
    fig4: Path, tmp_path: Path
) -> None:
    """In operation first come, first served stretched a linear axis until markers hid intervals."""
    rows = read_frame(fig4 / "deeprm-fig4.csv")
    rows = rows[rows["load"] == rows["load"].iloc[0]].copy()
    for k, (value, unfinished) in enumerate([(8, 0), (9, 19), (100, 1258)]):
        place = rows.index[k]
        rows.loc[place, ["slowdown", "slowdown_low", "slowdown_high", "unfinished"]] = [
            str(number) for number in (value, 0.9 * value, 1.1 * value, unfinished)
        ]
    write_table(tmp_path / "comparison.csv", rows.head(3))
    figure = comparison.draw(tmp_path / "comparison.csv")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    low, high = (axes.transData.transform((end, 0))[0] for end in (0.9 * 8, 1.1 * 8))
    assert high - low > 3 * 7 / 72 * figure.dpi  # an interval is thrice as wide as its marker
    inside = axes.get_window_extent()
    shown = [text for text in axes.texts if "lower bound" in text.get_text()]
    assert len(shown) == 2
    for text in shown:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 < box.x1 <= inside.x1


def test_fig6_holds_the_curves_and_the_heuristics_on_the_same_jobsets(fig6: Path) -> None:
    rows = read_table(fig6 / "learning-curves.csv", TEXTS)
    curves = [row for row in rows if row["series"] == "run"]
    assert [row["seed"] for row in curves] == ["0"] * 6 + ["1"] * 5
    assert [row["iteration"] for row in curves if row["value"]] == [
        "2.0",
        "4.0",
        "6.0",
        "2.0",
        "4.0",
    ]
    heuristics = [row for row in rows if row["series"] == "heuristic"]
    assert {(row["key"], row["seed"]) for row in heuristics} == {
        (key, seed) for key in HEURISTICS for seed in "01"
    }
    assert {row["jobsets"] for row in rows} == {"8"}


def test_fig6_averages_the_iterations_that_all_seeds_have(fig6: Path) -> None:
    rows = read_table(fig6 / "learning-curves.csv", TEXTS)
    left, right = learning_curves.draw(fig6 / "learning-curves.csv").axes
    curve = next(line for line in left.get_lines() if line.get_marker() == "o")
    assert curve.get_xdata().tolist() == [2, 4]  # type: ignore[union-attr]
    at_two = [number(row, "value") for row in rows if row["iteration"] == "2.0"]
    assert curve.get_ydata()[0] == pytest.approx(np.mean(at_two))  # type: ignore[index]
    assert [len(line.get_xdata()) for line in right.get_lines()] == [5, 5]  # type: ignore[arg-type]


def test_fig6_says_what_it_rests_on(fig6: Path) -> None:
    flat = texts(learning_curves.draw(fig6 / "learning-curves.csv")).replace("\n", " ")
    assert "load 70%" in flat
    assert "8 validation jobsets, arrival window 12 steps, rules of the paper; bands: all" in flat
    assert "all training seeds (small 2)" in flat


def test_figures_say_that_jobs_varied(tmp_path: Path) -> None:
    vary = ("task.workload.vary.load=[0.1, 1.0]", "task.workload.vary.small_share=[0.6, 0.8]")
    wide = make_run(tmp_path / "wide", "name=wide", *vary)
    for name, more in (("deeprm-fig4", ["--jobsets", "4"]), ("learning-curves", [])):
        run(name, "--runs", str(wide), "--out", str(tmp_path), *more)
    shown = texts(comparison.draw(tmp_path / "deeprm-fig4.csv"))
    assert "wide\n(trained on loads 10 to 100%,\nshort jobs 60 to 80%, 1 seed)" in shown
    assert "rings" not in shown
    shown = texts(learning_curves.draw(tmp_path / "learning-curves.csv"))
    assert "Learning curves on loads 10 to 100%, short jobs 60 to 80%" in shown


def test_a_figure_can_be_drawn_again_from_its_table_alone(fig6: Path, tmp_path: Path) -> None:
    table = fig6 / "learning-curves.csv"
    result = run("learning-curves", "--rows", str(table), "--out", str(tmp_path))
    assert "drawn from" in result.stdout
    again = (tmp_path / "learning-curves.png").read_bytes()
    assert again == table.with_suffix(".png").read_bytes()
    assert not (tmp_path / "learning-curves.csv").exists()


def test_a_figure_says_which_arrivals_count(tmp_path: Path) -> None:
    task = load_config("deeprm").task.build()
    protocol = EvaluationProtocol(task, num_jobsets=5, warmup=10)
    write_table(tmp_path / "table.csv", compare(protocol, [heuristic_spec("sjf")], [0.5, 0.9]))
    shown = texts(comparison.draw(tmp_path / "table.csv"))
    assert "5 unseen jobsets a load, jobs that arrive in steps 10 to 39 of 50, rules" in shown


def test_tables_from_before_there_were_warm_ups_can_still_be_drawn(
    fig4: Path, tmp_path: Path
) -> None:
    rows = read_table(fig4 / "deeprm-fig4.csv", comparison.COLUMNS)
    newer = {"warmup", "world", "jobs", "trained_for"}
    newer |= {"within_2_low", "within_2_high", "win_rate_low"}
    older = [{name: row[name] for name in row if name not in newer} for row in rows]
    write_table(tmp_path / "old.csv", older)
    assert "arrival window 12 steps" in texts(comparison.draw(tmp_path / "old.csv"))


def test_times_are_in_the_unit_of_their_world(tmp_path: Path) -> None:
    task = load_config("graphs", ["task.workload.jobs=8"]).task.build()
    protocol = EvaluationProtocol(task, num_jobsets=2)
    rows = compare(protocol, [heuristic_spec(name) for name in ("fair", "fifo")], [10.0])
    write_table(tmp_path / "table.csv", rows)
    words = texts(comparison.draw(tmp_path / "table.csv"))
    assert "mean completion time (ms)" in words.lower()
    assert "(steps)" not in words


def test_a_comparison_at_one_load_ranks_the_policies(tmp_path: Path) -> None:
    protocol = EvaluationProtocol(load_config("deeprm").task.build(), num_jobsets=20)
    names = ("random", "sjf", "packer")
    rows = compare(protocol, [heuristic_spec(name) for name in names], [0.9])
    write_table(tmp_path / "table.csv", rows)
    figure = comparison.draw(tmp_path / "table.csv")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["sjf", "packer", "random"]
    assert "Mean slowdown at load 90%" in texts(figure)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--jobsets", "3"], "name a figure: deeprm-fig4"),
        (["deeprm-fig8"], "unknown figure 'deeprm-fig8': did you mean"),
        (["learning-curves"], "this figure needs runs: give them with --runs"),
        (["learning-curves", "--runs", "no/such/*"], "no run directory matches"),
        (["deeprm-fig4", "--rows", "no/such.csv"], "cannot read no/such.csv"),
        (
            ["learning-curves", "--warmup", "5"],
            "learning-curves does not use --warmup; it uses --runs, --runners$",
        ),
    ],
)
def test_bad_input_is_one_sentence(args: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(*args)


def test_curves_of_different_tasks_are_refused(runs: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", "task.workload.load=1.0")
    with pytest.raises(InputError, match="learn different tasks"):
        run("learning-curves", "--runs", f"{runs}/small-s0,{other}", "--out", str(tmp_path))


def test_lines_are_drawn_along_the_values_that_are_asked_for(tmp_path: Path) -> None:
    run("deeprm-fig4", "--at", "0.4,0.8", "--jobsets", "3", "--out", str(tmp_path))
    rows = read_table(tmp_path / "deeprm-fig4.csv", comparison.COLUMNS)
    assert list(dict.fromkeys(number(row, "load") for row in rows)) == [0.4, 0.8]


def test_a_table_of_another_figure_or_with_old_names_of_columns_is_refused(
    fig4: Path, tmp_path: Path
) -> None:
    table = fig4 / "deeprm-fig4.csv"
    with pytest.raises(InputError, match="has no column 'series'"):
        run("learning-curves", "--rows", str(table), "--out", str(tmp_path))
    old = tmp_path / "old.csv"
    old.write_text(table.read_text().replace("trained_at", "trained_load", 1))
    with pytest.raises(InputError, match="rename its column trained_load to trained_at"):
        run("deeprm-fig4", "--rows", str(old), "--out", str(tmp_path))


def test_labels_are_moved_apart_and_no_farther() -> None:
    assert spread([0.1, 0.5], [0.1, 0.1]) == pytest.approx([0.1, 0.5])
    assert spread([0.5, 0.5], [0.1, 0.1]) == pytest.approx([0.45, 0.55])
    assert spread([0.50, 0.52, 0.9], [0.1, 0.3, 0.1]) == pytest.approx([0.41, 0.61, 0.9])
    placed = spread([0.2, 0.25, 0.3, 0.31], [0.1] * 4)
    assert np.diff(placed) == pytest.approx([0.1] * 3)


def test_a_world_of_many_rules_has_lines_for_its_baselines_alone() -> None:
    few, many = (load_config(name).task.build("a run", 0) for name in ("deeprm", "hpc-smoke"))
    assert heuristics_of(few) == few.spec.heuristics.names()
    assert heuristics_of(many) == many.spec.baselines


@pytest.mark.parametrize("world", WORLDS.names())
def test_no_two_heuristics_of_a_world_look_alike(world: str) -> None:
    names = {*get_spec(world).heuristics.names(), *get_spec(world).baselines}
    looks = {(color_of(name, learned=False), marker_of(name, learned=False)) for name in names}
    assert len(looks) == len(names) > 1


def test_means_of_what_was_left_unfinished_are_said_to_be_lower_bounds() -> None:
    rows = pd.DataFrame({"unfinished": [0.0, 3.0]})
    assert comparison.cut_texts(rows, ["5.10", "7.20"]) == [
        "5.10",
        "7.20, 3 jobs unfinished: a lower bound",
    ]


@pytest.mark.parametrize(("metric", "first"), [("slowdown", "low"), ("utilization", "high")])
def test_the_best_policy_stands_first(metric: str, first: str) -> None:
    rows = pd.DataFrame({"key": ["low", "high", "middle"], metric: [0.2, 0.9, 0.5]})
    assert comparison.ranked(rows, metric, metric)["key"].iloc[0] == first
