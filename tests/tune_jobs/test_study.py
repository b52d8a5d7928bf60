"""Rows of adaptation: which method a run is, what a row says, and what is measured again."""

import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from meta.study import StudyPlan
from rllib_configs.config.loading import load_config
from tests.tune_jobs.recording_tracker import record_with
from tests.tune_jobs.untrained_runs import make_run
from tests.tune_jobs.untrained_scorers import (
    FOMAML,
    JOINT,
    ONE_TASK,
    QUICK,
    make_family,
    make_scorer,
)
from tune_jobs import cli
from tune_jobs.adapting import rows
from tune_jobs.adapting.rows import (
    COLUMNS,
    HEURISTICS_FILE,
    measure_heuristics,
    measure_source,
    read_rows,
)
from tune_jobs.adapting.sources import Source, method_of, trained_on
from tune_jobs.measuring.work import Work
from tune_jobs.study import command
from tune_jobs.tables.frames import number, read_table
from tune_jobs.terminal.progress import Progress

pytestmark = pytest.mark.usefixtures("as_in_plans")


def run(*args: str) -> Result:
    return CliRunner().invoke(command, [*args, *QUICK], catch_exceptions=False)


@pytest.fixture(scope="module")
def out(as_in_plans: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods")
    make_family(folder / "small.yaml")
    for seed in range(2):
        make_scorer(folder / "runs" / f"joint-{seed}", *JOINT, seed=seed)
        make_scorer(folder / "runs" / f"fomaml-{seed}", *FOMAML, seed=seed, rates=2.0)
    make_scorer(folder / "runs" / "alone", *ONE_TASK)
    make_run(folder / "runs" / "deeprm")
    result = run(
        *(str(folder / "runs" / "*"), "--family", str(folder / "small.yaml")),
        *("--scratch", "1", "--out", str(folder / "rows")),
    )
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.parametrize(
    ("overrides", "method"),
    [
        (JOINT, "joint"),
        ((*JOINT, "training.conditioned_on=[slowdown]"), "conditioned"),
        ((*FOMAML, "training.adapt=context"), "rewards"),
        (FOMAML, "FOMAML K=1"),
        ((*FOMAML, "training.inner_steps=3", "training.order=second"), "ProMP K=3"),
        ((*FOMAML, "training.order=second", "training.surrogate=log_probability"), "MAML K=1"),
        (
            (*FOMAML, "training.adapt=head", "training.learn_rates=false"),
            "FOMAML K=1, head, fixed rates",
        ),
        ((*FOMAML, "training.adapt=direct"), "FOMAML K=1, direct"),
        (ONE_TASK, "one task"),
    ],
)
def test_a_run_is_the_arm_that_its_config_says(overrides: tuple[str, ...], method: str) -> None:
    config = load_config("deeprm-ppo", overrides)
    assert method_of(config) == method
    assert trained_on(config) == ("slowdown" if method == "one task" else "objectives")


def test_there_is_a_row_for_each_task_seed_and_step_of_each_run(out: Path) -> None:
    learned, heuristics = read_rows([out / "rows"])
    methods = {"joint", "FOMAML K=1", "one task", "scratch", "DeepRM"}
    assert {row["method"] for row in learned} == methods
    for name in ("joint-0", "joint-1", "fomaml-0", "fomaml-1", "alone", "deeprm"):
        rows = [row for row in learned if row["run"] == name and row["method"] != "scratch"]
        keys = [(row["task"], row["seed"], row["step"]) for row in rows]
        assert keys == [(t, s, k) for t in "01" for s in "01" for k in "012"]
        assert [row["episodes"] for row in rows] == ["0", "4", "8"] * 4
    rules = {"tetris", "sjf", "packer", "hold", "random", "fcfs", "easy"}
    assert {row["method"] for row in heuristics} == rules
    assert len(heuristics) == 2 * len(rules)
    for row in (*learned, *heuristics):  # some untrained policies start nothing at all
        assert 0 <= number(row, "utilization") < 1
        assert number(row, "wait") >= 0
        assert number(row, "longest_wait") >= 0
    assert all(number(row, "utilization") > 0 for row in heuristics)


def test_ratios_are_costs_over_the_lowest_of_three_heuristics(out: Path) -> None:
    learned, heuristics = read_rows([out / "rows"])
    best = {
        task: min(
            number(row, "cost")
            for row in heuristics
            if row["task"] == task and row["method"] in ("tetris", "sjf", "packer")
        )
        for task in "01"
    }
    for row in [*learned, *heuristics]:
        assert number(row, "best") == best[row["task"]]
        assert number(row, "ratio") == pytest.approx(number(row, "cost") / best[row["task"]])


def test_rates_are_the_learned_ones_or_the_best_of_those_tried(out: Path) -> None:
    learned, _ = read_rows([out / "rows"])
    for row in learned:
        if row["method"] in ("FOMAML K=1", "DeepRM"):
            assert (row["rate"], row["rates_tried"]) == ("", "")
            continue
        tried = dict(pair.split(":") for pair in row["rates_tried"].split())
        assert list(tried) == ["0.5", "2"]
        assert float(tried[f"{number(row, 'rate'):g}"]) == min(map(float, tried.values()))


@pytest.mark.parametrize(
    ("rate", "said"),
    [(0.5, " (the lowest of those tried)"), (1, ""), (2, " (the highest of those tried)")],
)
def test_a_rate_is_said_to_be_at_an_end_of_those_tried(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: float, said: str
) -> None:
    monkeypatch.setattr(rows, "choose_rate", lambda *given: (rate, {rate: 1.0}))
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / HEURISTICS_FILE).write_bytes((out / "rows" / "small" / HEURISTICS_FILE).read_bytes())
    plan = StudyPlan(
        num_tasks=1,
        num_seeds=1,
        steps=(0, 1),
        num_episodes=4,
        num_jobsets=2,
        num_evaluation_jobsets=4,
        rates=(0.5, 1, 2),
    )
    source, stream = Source(out / "runs" / "alone"), io.StringIO()
    work = Work(progress=Progress(stream))
    measure_source(source, str(out / "small.yaml"), plan, tmp_path, work)
    assert stream.getvalue().startswith(f"alone: inner rate {rate:g}{said}\n")


def test_what_is_complete_is_left_alone_and_what_has_changed_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = make_family(tmp_path / "small.yaml")
    runs = [make_scorer(tmp_path / f"run-{k}", *ONE_TASK, seed=k) for k in range(2)]
    args = (*map(str, runs), "--family", str(family), "--rate", "1", "--out", str(tmp_path / "o"))
    run(*args)
    files = sorted((tmp_path / "o" / "small").glob("*.csv"))
    assert [file.name for file in files] == ["heuristics.csv", "run-0.csv", "run-1.csv"]
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    make_scorer(runs[1], *ONE_TASK, seed=5)
    run(*args)
    after = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    assert after["heuristics.csv"] == before["heuristics.csv"]
    assert after["run-0.csv"] == before["run-0.csv"]
    assert after["run-1.csv"][0] != before["run-1.csv"][0]
    (tmp_path / "o" / "small" / "run-0.csv").unlink()
    run(*args)
    assert files[1].read_bytes() == before["run-0.csv"][0]
    # What other code has measured is not what this code measures.
    monkeypatch.setattr("tune_jobs.measuring.fingerprints._sources", lambda: "another")
    run(*args)
    assert all(file.read_bytes() != after[file.name][0] for file in files)


def test_a_study_that_was_stopped_goes_on_with_the_next_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = str(make_family(tmp_path / "small.yaml"))
    run_folder = str(make_scorer(tmp_path / "run", *ONE_TASK))
    args = (run_folder, "--scratch", "1", "--family", family, "--rate", "1", "--out")
    run(*args, str(tmp_path / "whole"))
    measured: list[object] = []
    measure = rows.measure

    def counted(*given: object, most: int) -> object:
        if len(measured) == most:
            raise RuntimeError("stopped")
        measured.append(given)
        return measure(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(rows, "measure", partial(counted, most=1))
        with pytest.raises(RuntimeError, match="stopped"):
            run(*args, str(tmp_path / "o"))
    monkeypatch.setattr(rows, "measure", partial(counted, most=9))
    run(*args, str(tmp_path / "o"))
    assert len(measured) == 4  # two policies on two tasks
    whole, both = (tmp_path / name / "small" / "run.csv" for name in ("whole", "o"))
    assert both.read_bytes() == whole.read_bytes()
    alike = read_table(tmp_path / "o" / "small" / "scratch-s0.csv", COLUMNS)  # in its weights
    assert {row["method"] for row in alike} == {"scratch"}


def test_what_another_plan_has_measured_is_measured_again(tmp_path: Path) -> None:
    family = str(make_family(tmp_path / "small.yaml"))
    source = Source(make_scorer(tmp_path / "run", *ONE_TASK), rate=1.0)
    first = StudyPlan(
        num_tasks=1,
        num_seeds=1,
        steps=(0, 1),
        num_episodes=2,
        num_jobsets=1,
        num_evaluation_jobsets=2,
    )
    measured = {}
    for plan in (first, replace(first, steps=(0, 2)), replace(first, num_episodes=4), first):
        measure_heuristics(family, plan, tmp_path)
        path = measure_source(source, family, plan, tmp_path)
        (mark,) = {row["fingerprint"] for row in read_table(path, COLUMNS)}
        assert measured.setdefault(mark, plan) == plan
        assert [number(row, "step") for row in read_table(path, COLUMNS)] == list(plan.steps)
    assert len(measured) == 3


def test_policies_without_training_differ_in_their_weights(tmp_path: Path) -> None:
    path = make_scorer(tmp_path / "run", *ONE_TASK)
    weights = [Source(path, scratch=seed).load().weights for seed in (0, 1, 1)]
    name = next(iter(weights[0]))
    assert weights[1][name].tolist() == weights[2][name].tolist() != weights[0][name].tolist()


def test_means_can_be_tracked(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record_with(monkeypatch)
    family, rows = str(out / "small.yaml"), out / "rows"
    runs = [str(out / "runs" / name) for name in ("joint-0", "alone")]
    run(*runs, "--family", family, "--out", str(rows), "--track")
    assert recorder.files == ["joint-0.csv", "alone.csv"]
    ratios = [number(row, "ratio") for row in read_table(rows / "small" / "alone.csv", COLUMNS)]
    assert recorder.points["alone/ratio", 2] == pytest.approx(sum(ratios[2::3]) / 4)


def test_scratch_may_take_more_steps_than_the_others(out: Path, tmp_path: Path) -> None:
    args = (str(out / "runs" / "alone"), "--family", str(out / "small.yaml"), "--rate", "1")
    for times in "12":
        run(*args, "--scratch", "1", "--scratch-times", times, "--out", str(tmp_path))
    folder = tmp_path / "small"
    once, twice = (read_table(folder / f"scratch{x}-s0.csv", COLUMNS) for x in ("", "-x2"))
    assert {row["method"] for row in twice} == {"scratch-x2"}
    assert [(row["step"], row["episodes"]) for row in twice[:3]] == [
        ("0", "0"),
        ("1", "8"),
        ("2", "16"),
    ]
    assert [row["cost"] for row in twice[1::3]] == [row["cost"] for row in once[2::3]]
    assert len(read_table(folder / "alone.csv", COLUMNS)) == len(once)


@pytest.mark.slow
def test_other_processes_measure_the_same(out: Path, tmp_path: Path) -> None:
    """With two runners tasks are measured side by side, and inner rates are tried so."""
    result = run(
        *(str(out / "runs" / "alone"), "--runners", "2"),
        *("--family", str(out / "small.yaml"), "--out", str(tmp_path)),
    )
    assert result.exit_code == 0
    here, there = (folder / "small" / "alone.csv" for folder in (tmp_path, out / "rows"))
    assert read_table(here, COLUMNS) == read_table(there, COLUMNS)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "name the runs to measure"),
        (("nowhere/run",), "there is no run directory nowhere/run"),
        (("{run}", "--family", "objectivs"), "did you mean 'objectives'"),
        (("{run}", "--steps", "1,x"), "whole numbers like 0,1,3, not '1,x'"),
        (("{run}", "--steps", "3,1"), "ascending"),
        (
            ("{run}", "--family", "objectives"),
            "cannot be adapted to a world with capacity (10, 10)",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    out: Path,
    tmp_path: Path,
    args: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path / "rows"
    given = [arg.format(run=out / "runs" / "alone") for arg in args]
    assert cli.run(cli.metasched, ["study", *given, "--tasks", "1", "--out", str(here)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not here.exists()
