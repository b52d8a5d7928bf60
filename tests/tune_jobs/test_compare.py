"""``metasched compare``: rows, text, JSON, files, and one clear sentence for what is wrong."""

import json
import math
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic, get_spec
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.workloads import BimodalWorkload
from rllib_configs.config.loading import load_config
from tests.tune_jobs.recording_tracker import record_with
from tests.tune_jobs.untrained_runs import make_run
from tune_jobs.compare import command
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.comparison import compare
from tune_jobs.measuring.policy_specs import heuristic_spec, learned_specs
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.table import format_rows
from tune_jobs.measuring.trained_runs import TrainedRun, find_runs, group_by_experiment, load_runs
from tune_jobs.tables.frames import number, read_table
from tune_jobs.terminal.running import compare_command


def run(*args: str) -> Result:
    return CliRunner().invoke(command, ["--jobsets", "20", *args], catch_exceptions=False)


def rows_of(*args: str) -> list[dict[str, object]]:
    return json.loads(run("--json", *args).stdout)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds of one experiment, and one run of another load."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        make_run(folder / f"small-s{seed}", "name=small", seed=seed)
    make_run(folder / "small-busy", "name=small", "task.workload.load=1.0")
    return folder


@pytest.mark.integration
def test_rows_do_not_depend_on_who_evaluates(
    local_ray: None, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tune_jobs.measuring.reporting.CALIBRATION_JOBSETS", 20)
    what = ("--policies", f"sjf,random,{runs}/small-s0", "--loads", "0.5,0.9", "--guard")
    spread, here = rows_of(*what, "--runners", "1"), rows_of(*what)
    seconds = [row.pop("guard_s") for row in (*spread, *here) if "guard_s" in row]
    assert len(seconds) == 4  # the one number that is a time
    assert spread == here


def test_rows_are_those_of_the_evaluation_on_held_out_jobsets() -> None:
    rows = rows_of("--policies", "sjf,random", "--loads", "0.9")
    workload = BimodalWorkload(load=0.9)
    jobsets = sample_jobsets(workload, 0, Split.HELD_OUT, range(20))
    for row in rows:
        policy = get_heuristic(str(row["policy"]), DeepRM())
        means = summarize(evaluate(policy, jobsets, DeepRM())).means
        for name in ("slowdown", "makespan", "utilization", "within_2", "num_jobs"):
            assert row[name] == pytest.approx(means[name])
    assert [row["best"] for row in rows] == [True, False]


def test_rules_and_settings_change_the_task() -> None:
    paper, released = (rows_of("--policies", "sjf", "--rules", r)[0] for r in ("paper", "released"))
    assert paper["slowdown"] != released["slowdown"]
    longer = rows_of("--policies", "sjf", "--set", "task.workload.window=80")[0]
    assert longer["window"] == 80
    assert float(str(longer["num_jobs"])) > float(str(paper["num_jobs"]))


def test_a_warm_up_measures_the_jobs_in_the_middle() -> None:
    args = ("--policies", "sjf", "--loads", "0.9", "--window", "60", "--warmup", "20")
    row = rows_of(*args)[0]
    jobsets = sample_jobsets(BimodalWorkload(load=0.9, window=60), 0, Split.HELD_OUT, range(20))
    schedule = evaluate(get_heuristic("sjf", DeepRM()), jobsets, DeepRM())
    kept = (schedule.arrival >= 20) & (schedule.arrival < 40)
    assert row["slowdown"] == pytest.approx(schedule.slowdown[kept].mean())
    assert (row["num_jobs"], row["window"], row["warmup"]) == (kept.sum(), 60, 20)
    text = run(*args).stdout
    assert "jobs that arrive in steps 20 to 39 of 60, rules of the paper" in text
    assert "Jobs outside these steps were scheduled but do not count" in text


def test_a_window_brings_the_time_that_its_episodes_need() -> None:
    def task_of(*overrides: str, window: int | None) -> tuple[int, int]:
        given = {} if window is None else {"window": window}
        task = choose_config(None, overrides, given, []).task
        return task.workload.window, task.world.max_time

    assert task_of(window=None) == (50, 1000)
    assert task_of(window=80) == (80, 1000)
    assert task_of(window=500) == (500, 5000)
    assert task_of("task.world.max_time=800", window=500) == (500, 800)
    assert task_of("task.workload.load=0.9", window=200) == (200, 2000)


def test_jobs_lost_to_a_full_backlog_are_said_to_be_among_the_unfinished() -> None:
    small = (
        "--set",
        "task.world.cluster.backlog_view=1",
        "--set",
        "task.world.cluster.num_slots=2",
    )
    args = ("--policies", "sjf", "--loads", "1.3", "--rules", "released", *small)
    assert float(str(rows_of(*args)[0]["unfinished"])) > 0
    assert "a full backlog dropped are among the unfinished" in run(*args).stdout


def test_tuned_heuristics_show_their_number_and_never_see_the_held_out_jobsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Split, int]] = []
    original = sample_jobsets

    def spy(workload, seed, split, indices):  # type: ignore[no-untyped-def]
        indices = list(indices)
        seen.append((split, len(indices)))
        return original(workload, seed, split, indices)

    monkeypatch.setattr("cluster_env.task.sample_jobsets", spy)
    protocol = EvaluationProtocol(load_config("deeprm").task.build(), num_jobsets=10)
    rows = compare(protocol, [heuristic_spec("tetris"), heuristic_spec("hold")], [0.7])
    assert str(rows[0]["policy"]).startswith("tetris*(0.0")
    assert str(rows[1]["policy"]) in ("hold*(6)", "hold*(8)", "hold*(12)", "hold*(16)")
    assert sorted(seen) == [
        (Split.VALIDATION, 200),
        (Split.VALIDATION, 200),
        (Split.HELD_OUT, 1),  # whose arrival window is checked before anything is evaluated
        (Split.HELD_OUT, 10),
    ]


def test_the_objective_decides_who_is_best() -> None:
    names = ("--policies", "sjf,packer", "--loads", "1.3", "--jobsets", "60")
    best = {}
    for objective in ("slowdown", "makespan"):
        rows = rows_of(*names, "--set", f"task.objective={objective}")
        best[objective] = next(row["policy"] for row in rows if row["best"])
    assert best == {"slowdown": "sjf", "makespan": "packer"}


def test_a_mixture_is_decided_by_what_an_episode_costs(tmp_path: Path) -> None:
    name = "0.01 slowdown + 4 makespan"
    setting = "task.objective={slowdown: 0.01, makespan: 4}"
    names = ("--policies", "sjf,packer", "--loads", "1.3", "--jobsets", "60")
    rows = rows_of(*names, "--set", setting)
    assert rows == rows_of(*names, "--set", f"task.objective={name}")
    for row in rows:
        jobs_per_episode = row["num_jobs"] / 60
        cost = 0.01 * row["slowdown"] * jobs_per_episode + 4 * row["makespan"]
        assert row[name] == pytest.approx(cost)
        assert row[f"{name}_low"] <= cost <= row[f"{name}_high"]
    assert [row["best"] for row in rows] == [False, True]
    shown = run("--policies", "sjf", "--set", setting, "--out", str(tmp_path / "mixed"))
    assert "objective [95%]" in shown.output
    assert f"objective: {get_metric(name).label}" in shown.output
    assert (tmp_path / "mixed" / "comparison.png").is_file()


def test_runs_that_differ_in_their_seed_alone_are_one_line(runs: Path) -> None:
    rows = rows_of("--policies", f"sjf,{runs}/small-*", "--loads", "0.7")
    assert [row["policy"] for row in rows] == ["sjf", "small@100%", "small@70%"]
    group = rows[2]
    assert (group["seeds"], group["trained_at"], group["trained_on"]) == (3, 0.7, "load 70%")
    assert group["interval_over"] == "seeds and jobsets"
    alone = [
        rows_of("--policies", f"{runs}/small-s{seed}", "--loads", "0.7")[0] for seed in range(3)
    ]
    mean = sum(float(str(row["slowdown"])) for row in alone) / 3
    assert group["slowdown"] == pytest.approx(mean)
    assert alone[0]["interval_over"] == "jobsets"


def test_the_task_is_that_of_the_first_run(runs: Path) -> None:
    row = rows_of("--policies", f"{runs}/small-busy")[0]
    assert (row["load"], row["window"]) == (1.0, 12)


def test_copies_of_one_seed_are_not_taken_for_a_sample_of_seeds(runs: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(runs / "small-s0", tmp_path / name)
    groups = group_by_experiment(load_runs(find_runs([f"{tmp_path}/*"]), "sample"))
    assert [(key, len(group)) for key, group in groups] == [("one", 1), ("two", 1)]


def test_runs_that_began_with_that_of_their_seed_are_one_group() -> None:
    """But not with one that they all began with and one that is another's."""
    begun = [(0, "a-0"), (1, "a-1"), (2, "b-2"), (3, "a-1"), (11, "a-1")]
    runs = [
        TrainedRun(
            Path(f"run-{seed}"),
            load_config("deeprm", [f"seed={seed}", f"training.start={start}"]),
            None,
        )
        for seed, start in begun
    ]
    groups = group_by_experiment(runs)
    assert [[run.config.seed for run in group] for _, group in groups] == [[0, 1], [2], [3, 11]]


@pytest.mark.parametrize("name", ["hiddens=[64, 64]?", "a,b", "all*", " c", "plain"])
def test_a_folder_of_any_name_is_meant_by_the_command_that_names_it(
    tmp_path: Path, name: str
) -> None:
    make_run(tmp_path / name, "name=strange")
    line = shlex.split(compare_command(["sjf", tmp_path / name]))
    assert line[-1].endswith(name)
    names = [row["policy"] for row in rows_of(*line[line.index("compare") + 1 :])]
    assert names == ["sjf", "strange"]


def test_a_glob_passes_over_folders_that_hold_no_run(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mlartifacts").mkdir()
    shutil.copytree(runs / "small-s0", tmp_path / "one")
    assert find_runs([f"{tmp_path}/*"]) == [tmp_path / "one"]
    with pytest.raises(InputError, match="no run directory matches"):
        find_runs([f"{tmp_path}/ml*"])


def test_text_marks_the_best_and_says_what_its_numbers_mean(runs: Path) -> None:
    text = run("--policies", f"sjf,random,{runs}/small-s*").stdout
    lines = text.splitlines()
    assert lines[0].startswith("Load 70%: 20 unseen jobsets, ")
    assert next(line for line in lines if line.startswith(">")).split()[1] == "sjf"
    assert "small (trained at 70%, 3 seeds)" in text
    assert "interval over seeds and jobsets" in text
    assert "Unfinished" not in text


def test_the_price_of_a_slowdown_stands_beside_it() -> None:
    row = rows_of("--policies", "hold:12", "--loads", "0.9")[0]
    jobsets = sample_jobsets(BimodalWorkload(load=0.9), 0, Split.HELD_OUT, range(20))
    schedule = evaluate(get_heuristic("hold:12", DeepRM()), jobsets, DeepRM())
    waits = schedule.start - schedule.arrival
    longest = [waits[schedule.episode == e].max() for e in range(20)]
    assert row["wait"] == pytest.approx(waits.mean())
    assert row["longest_wait"] == pytest.approx(np.mean(longest))
    assert row["wait_low"] < row["wait"] < row["wait_high"]
    lines = run("--policies", "hold:12", "--loads", "0.9").stdout.splitlines()
    heads = ["policy", "slowdown", "[95%]", "util", "wait", "longest", "to", "end", "small"]
    assert lines[1].split()[:9] == heads  # and more, as far as a line of 80 has room
    assert lines[2].split()[:2] == ["steps", "steps"]  # under wait and longest
    assert max(map(len, lines[1:])) <= 80
    assert lines[3].split()[5:8] == [
        f"{row['utilization']:.1%}",
        f"{row['wait']:.1f}",
        f"{row['longest_wait']:.1f}",
    ]


def test_rows_fit_a_terminal_unless_they_are_to_be_wide(runs: Path) -> None:
    args = ("--policies", f"sjf,hold,{runs}/small-s*", "--set", "task.world.max_time=30")
    table = run(*args, "--decode", "tuned").stdout.partition("\n\n")[0].splitlines()[1:]
    assert max(map(len, table)) <= 80
    assert "unfinished" in table[0]
    assert "seeds)" in " ".join(table)  # the end of a name that goes on below
    task = load_config("deeprm", ["task.world.max_time=60"]).task.build()
    specs = [heuristic_spec("sjf"), heuristic_spec("tetris")]
    rows = compare(EvaluationProtocol(task, num_jobsets=20), specs, [0.7])
    wide = format_rows(rows, wide=True).splitlines()[1].split()
    assert wide[3:] == [
        *("util", "wait", "longest", "to", "end", "small", "large", "largest", "p95", "<=2"),
        *("completion", "makespan", "win", "rate", "unfinished"),
    ]


def test_unfinished_jobs_are_shown_and_explained(runs: Path) -> None:
    args = (
        "--policies",
        f"{runs}/small-s0",
        "--decode",
        "argmax",
        "--set",
        "task.world.max_time=30",
    )
    row = rows_of(*args)[0]
    assert row["policy"] == "small (argmax)"
    assert row["unfinished"] > 0  # type: ignore[operator]
    assert "means with any are lower bounds" in " ".join(run(*args).stdout.split())


def test_files_hold_all_rows_and_the_figure_is_drawn(tmp_path: Path) -> None:
    policies = ("--policies", "sjf", "--policies", "random,hold:4")
    result = run(*policies, "--loads", "0.5,0.9", "--out", str(tmp_path / "new"))
    assert f"Wrote {tmp_path / 'new' / 'comparison.csv'}" in result.stdout
    table = read_table(tmp_path / "new" / "comparison.csv", ["policy", "slowdown"])
    assert [(row["load"], row["policy"]) for row in table] == [
        (load, policy) for load in ("0.5", "0.9") for policy in ("sjf", "random", "hold:4")
    ]
    assert math.isnan(number(table[0], "trained_at"))
    image = (tmp_path / "new" / "comparison.png").read_bytes()
    assert image.startswith(b"\x89PNG")


def test_a_comparison_can_be_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record_with(monkeypatch)
    out = tmp_path / "comparison"
    run("--policies", "sjf,tetris", "--loads", "0.5,0.9", "--out", str(out), "--track")
    rows = read_table(out / "comparison.csv", ["policy"])
    assert list(recorder.children) == ["load 50%, unseen", "load 90%, unseen"]
    tags, part = recorder.children["load 90%, unseen"]
    assert (tags["load"], tags["protocol"]) == ("0.9", "unseen")
    assert part.points["tetris/slowdown", 0] == number(rows[3], "slowdown")
    assert recorder.files == ["comparison.csv", "comparison.png"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--policies", "sjff"], "unknown policy or run directory 'sjff': did you mean 'sjf'"),
        (["--policies", "xyz"], "'xyz': known are deeprm-operation, easy, fcfs, hold, hpc-order, "),
        (["--policies", "xyz", "--config", "accrual-ppo"], "known are aggressive, dasa, deeprm-"),
        (["--policies", "no/such/run"], "there is no run directory no/such/run"),
        (["--policies", "no/such/*"], r"no run directory matches 'no/such/\*'"),
        (["--policies", "sjf,sjf"], "'sjf' is named twice"),
        (["--policies", " ,"], "--policies names nothing"),
        (["--policies", "hold:x"], "'hold:' needs a number"),
        (["--loads", "70"], r"load 70 is out of reach: .* loads from 0\.001 up to 1\.845"),
        (["--loads", "1.9"], "load 1.9 is out of reach"),
        (["--at", "0"], "load 0 is out of reach: .* loads from 0.001"),
        (["--rules", "papr"], "paper"),
        (["--set", "task.objective=makespam"], "did you mean 'makespan'"),
        (["--set", "task.objective=1 slowdown + 1 makespam"], "did you mean 'makespan'"),
        (["--config", "deepr"], "did you mean 'deeprm'"),
        (["--track"], "needs --out"),
        (["--warmup", "25"], "a warm-up of 25 steps is left out at both ends"),
        (
            ["--window", "9", "--set", "task.workload.window=9"],
            "set the same value; give one of them",
        ),
    ],
)
def test_bad_input_is_one_sentence(args: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        run(*args)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no trained policy in"):
        run("--policies", str(tmp_path))


def test_what_mixtures_trained_is_compared_at_a_point_and_says_so(tmp_path: Path) -> None:
    vary = ("task.workload.vary.load=[0.1, 1.0]", "task.workload.vary.window=[12, 20]")
    generalist = make_run(tmp_path / "generalist", "name=wide", *vary)
    make_run(tmp_path / "specialist", "name=wide")
    names = ("--policies", f"{tmp_path}/*")
    rows = rows_of(*names)
    assert [(row["key"], row["trained_at"]) for row in rows] == [
        ("wide@10-100%", None),
        ("wide@70%", 0.7),
    ]
    assert {(row["load"], row["window"]) for row in rows} == {(0.7, 12)}
    alone = rows_of("--policies", str(tmp_path / "specialist"))[0]
    assert rows[1]["slowdown"] == alone["slowdown"]  # the same jobsets: nothing varies here
    text = " ".join(run(*names, "--out", str(tmp_path / "out")).stdout.split())
    assert "wide (trained on loads" in text
    again = rows_of("--policies", str(generalist), "--loads", "0.9")[0]
    assert (again["load"], again["trained_on"]) == (0.9, "loads 10 to 100%, windows 12 to 20")


def test_runs_of_one_name_are_told_apart_by_the_jobs_that_they_were_trained_on() -> None:
    runs = [
        SimpleNamespace(
            path=Path(f"runs/{longest}"),
            config=load_config("hpc-base", ["name=mine", f"task.workload.longest={longest}"]),
        )
        for longest in (15, 48)
    ]
    names = [name for name, _ in group_by_experiment(runs)]
    assert names == ["mine@up_to_15_s", "mine@up_to_48_s"]


def test_a_run_of_another_cluster_is_refused_before_anything_is_evaluated(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tune_jobs.measuring.evaluating.compare_policies", pytest.fail)
    with pytest.raises(
        InputError, match=r"s0 was trained for another world, with capacity \(4, 4\)"
    ):
        run("--policies", f"sjf,{runs}/small-s0", "--config", "deeprm")


def test_learned_policies_are_reported_by_name_even_alone(runs: Path) -> None:
    trained = load_runs(find_runs([str(runs / "small-s0")]), "sample")
    protocol = EvaluationProtocol(trained[0].config.task.build(), num_jobsets=5)
    rows = compare(protocol, learned_specs(trained, "sample"), [0.7])
    assert math.isnan(float(rows[0]["win_rate"]))
    text = format_rows(rows, wide=True)
    assert "win rate:" not in text
    assert "\x1b" not in text  # it may be written to a file


def test_without_names_all_heuristics_of_the_world_are_compared() -> None:
    assert [row["key"] for row in rows_of()] == list(get_spec("deeprm").heuristics.names())


def test_a_protocol_says_what_it_rests_on_in_the_words_of_its_world() -> None:
    protocol = EvaluationProtocol(load_config("deeprm").task.build(seed=3)).at(0.9)
    assert protocol.metric == "slowdown"
    assert protocol.value == protocol.task.position == 0.9
    columns = protocol.columns()
    assert list(columns)[:6] == ["load", "load_used", "trace", "arrival_rate", "rules", "window"]
    assert (columns["seed"], columns["world"], columns["jobs"]) == (3, "deeprm", "load 90%")
    capped = replace(protocol, cap=True).at(1.9)
    assert capped.value == 1.9
    assert capped.columns()["load_used"] == pytest.approx(1.845)


def test_a_world_may_differ_in_what_policies_transfer_over(runs: Path) -> None:
    row = rows_of("--policies", f"{runs}/small-s0", "--rules", "released")[0]
    assert (row["rules"], row["learned"]) == ("released", True)
