"""``metasched adapt``: what it says, what it writes, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from cluster_env.core.metric import utilization
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic, get_spec
from meta.adaptation import adapt_policy, load_meta_policy
from meta.costs import Cost
from meta.maml.decisions import Decisions
from meta.maml.first_order import FirstOrder
from meta.maml.steps import Parameters
from meta.tasks import Task, read_task
from rllib_configs.policy_files import LearnedPolicy, load_policy
from tests.tune_jobs.recording_tracker import record_with
from tests.tune_jobs.untrained_scorers import FOMAML, ONE_TASK, make_family, make_scorer
from tune_jobs import adapt, cli, compare
from tune_jobs.adapting import table
from tune_jobs.tables.frames import number, read_table

pytestmark = pytest.mark.usefixtures("as_in_plans")

QUICK = ("--episodes", "4", "--jobsets", "2", "--evaluate", "6")
TRACE = "arrival,duration,cpu,memory\n" + "\n".join(f"{k},{1 + k % 4},2,1" for k in range(60))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scorer(tmp_path_factory.mktemp("runs") / "alone", *ONE_TASK)


def call(run: Path, *args: str) -> Result:
    result = CliRunner().invoke(adapt.command, [str(run), *args, *QUICK], catch_exceptions=False)
    assert result.exit_code == 0
    return result


def test_the_table_shows_steps_and_heuristics(run: Path) -> None:
    said = call(run, "--task", "objective=makespan", "--steps", "4").output
    lines = [line.split("  ")[0].partition(",")[0] for line in said.splitlines()]
    assert "over best rule" in said
    assert said.count(", kept") == 1
    assert "my task: makespan, load 70%" in said
    for name in ("before adaptation", "after 1 step", "after 3 steps", "after 4 steps", "sjf"):
        assert name in lines
    assert "mean makespan (steps) on 6 held-out jobsets; lower is better" in said
    assert "the policy costs" in said.splitlines()[-2].lower()
    last = call(run, "--task", "objective=makespan", "--steps", "4", "--keep", "last").output
    assert "After 4 steps the policy costs" in last


def test_json_rows_are_costs_on_the_same_jobsets(run: Path) -> None:
    line = ("--task", "workload.load=0.9", "--steps", "2", "--json")
    rows = json.loads(call(run, *line).output)
    assert rows == json.loads(call(run, *line, "--runners", "1").output)
    assert [row["step"] for row in rows if "step" in row] == [0, 1, 2]
    assert [row["episodes"] for row in rows if "step" in row] == [0, 4, 8]
    bar = {row["policy"].partition(":")[0]: row["cost"] for row in rows if "step" not in row}
    assert set(bar) == set(get_spec("deeprm").heuristics.names())
    best = min(bar.values())
    assert all(row["ratio"] == pytest.approx(row["cost"] / best) for row in rows)


def test_the_best_rule_is_that_of_the_table_and_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is none of the world's baselines, as hold in short windows."""
    measure = table.heuristic_costs

    def with_best_hold(task: Task, names: list[str], **options: Any) -> dict[str, Cost]:
        costs = measure(task, names, **options)
        assert "hold" not in task.spec.baselines
        return {
            name: replace(cost, value=0.5) if name == "hold" else cost
            for name, cost in costs.items()
        }

    monkeypatch.setattr(table, "heuristic_costs", with_best_hold)
    line = ("--task", "objective=makespan", "--steps", "1")
    rows = json.loads(call(run, *line, "--json").output)
    assert all(row["ratio"] == pytest.approx(row["cost"] / 0.5) for row in rows)
    said = call(run, *line).output
    names = [row["policy"].partition(":")[0] for row in rows if "step" not in row]
    (hold,) = (row["policy"] for row in rows if row["cost"] == 0.5)
    assert f"more than {hold}, the best of {', '.join(names[:-1])} and {names[-1]}." in said


def test_what_is_written_can_be_compared_and_adapted_further(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "adapted"
    line = ("--task", "objective=makespan", "--steps", "2", "--keep", "last")
    call(run, *line, "--out", str(out))
    assert {path.name for path in out.iterdir()} == {"adaptation.csv", "config.yaml", "weights.pt"}
    assert [path.name for path in out.parent.iterdir()] == ["adapted"]
    rows = read_table(out / "adaptation.csv", ("policy", "cost", "ratio"))
    assert number(rows[2], "step") == 2
    policy = load_meta_policy(run)
    task = read_task(["objective=makespan"], policy.task)
    adapted = adapt_policy(policy, task, 2, num_episodes=4, num_jobsets=2)
    expected = adapted.parameters[2]
    found = load_meta_policy(out)
    assert all(torch.equal(found.parameters[name], expected[name]) for name in expected)
    _, config = load_policy(out)
    assert (config.task.objective, config.name) == ("makespan", "alone-adapted")
    args = ["--policies", f"sjf,{run},{out}", "--jobsets", "6", "--json"]
    result = CliRunner().invoke(compare.command, args, catch_exceptions=False)
    assert {row["key"] for row in json.loads(result.output)} == {"sjf", "alone", "alone-adapted"}
    call(out, "--task", "objective=slowdown")


@pytest.mark.parametrize(
    ("validation", "kept", "words"),
    [
        (
            (3.0, 2.0, 4.0),
            1,
            ("After 1 step (best on validation jobsets) the policy costs 16.7% more than before",),
        ),
        ((2.0, 3.0, 4.0), 0, ("No step was better on validation", "the policy is kept unchanged")),
    ],
)
def test_what_is_kept_is_best_on_validation_jobsets(
    validation: tuple[float, ...],
    kept: int,
    words: tuple[str, ...],
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Costs are made up: on the jobsets of the table they are 6, 7 and 5."""
    policy = load_meta_policy(run)
    task = read_task(["objective=makespan"], policy.task)
    steps = adapt_policy(policy, task, 2, num_episodes=4, num_jobsets=2).parameters

    measure, names = table.costs_on, ("before adaptation", "after 1 step", "after 2 steps")

    def costs(
        policies: list[LearnedPolicy],
        task: Task,
        *,
        num_jobsets: int,
        split: Split = Split.HELD_OUT,
        warmup: int = 0,
    ) -> list[Cost]:
        values = validation if split is Split.VALIDATION else (6.0, 7.0, 5.0)
        value_of = dict(zip(names, values, strict=True))
        found = measure(policies, task, num_jobsets=2)
        return [replace(one, value=value_of[one.policy]) for one in found]

    monkeypatch.setattr(table, "costs_on", costs)
    out = tmp_path / "adapted"
    said = call(run, "--task", "objective=makespan", "--steps", "2", "--out", str(out)).output
    assert all(text in said for text in words)
    assert ("Warning: on held-out jobsets the kept policy is worse" in said) == (kept == 1)
    assert "Next     the same with more jobsets per step, --jobsets 4 --episodes 8, or with" in said
    found = load_meta_policy(out).parameters
    assert all(torch.equal(found[name], steps[kept][name]) for name in found)
    rows = read_table(out / "adaptation.csv", ("kept", "validation_cost"))
    assert [int(row["kept"]) for row in rows[:3]] == [k == kept for k in range(3)]


def test_steps_that_move_nothing_are_said_with_their_reason(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second step and the third move nothing, as where jobsets do not agree."""
    whole = FirstOrder.inner_step

    def inner_step(
        self: FirstOrder, parameters: Parameters, rates: Parameters, decisions: Decisions, step: int
    ) -> Parameters:
        return parameters if step else whole(self, parameters, rates, decisions, step)

    monkeypatch.setattr(FirstOrder, "inner_step", inner_step)
    monkeypatch.setattr(FirstOrder, "why_unchanged", lambda *_: "the jobsets did not agree")
    line = ("--task", "objective=makespan", "--steps", "3", "--keep", "last")
    said = call(run, *line).output
    assert "2 of 3 steps changed nothing, because the jobsets did not agree." in said
    assert said.count(", as above") == 2
    monkeypatch.setattr(FirstOrder, "inner_step", lambda _, parameters, *__: parameters)
    said = call(run, *line).output
    assert "3 of 3 steps changed nothing" in said
    assert "The policy is unchanged and costs" in said
    assert "than before" not in said
    assert said.splitlines()[-1].endswith("--jobsets 4 --episodes 8")


def test_on_a_log_costs_are_those_of_a_comparison(tmp_path: Path) -> None:
    """Windows of the same jobs, behind the same warm-up; times of the world are seconds."""
    jobs = tmp_path / "jobs.csv"
    rows = [f"{300 * k},{600 + 400 * (k % 7)},{1 + k % 12}" for k in range(2000)]
    jobs.write_text("\n".join(["arrival,duration,processors", *rows]))
    run = make_scorer(tmp_path / "hpc", "training.hidden=4", preset="hpc-maml")
    machine = ("world.processors=16", f"workload.trace={jobs}", "objective=completion_time")
    said = [text for change in machine for text in ("--task", change)]
    found = json.loads(call(run, *said, "--steps", "0", "--json").output)
    args = ["--policies", f"saf,wspt,{run}", "--decode", "argmax", "--jobsets", "6", "--json"]
    args += [text for change in machine for text in ("--set", f"task.{change}")]
    result = CliRunner().invoke(compare.command, args, catch_exceptions=False)
    told = json.loads(result.output)
    costs = {row["policy"]: row["cost"] for row in found}
    assert [costs[name] for name in ("saf", "wspt", "before adaptation")] == [
        pytest.approx(row["completion_time"]) for row in told
    ]
    assert found[0]["warmup"] == told[0]["warmup"] > 0
    assert found[0]["label"] == "mean completion time (s)"


def test_what_a_cost_was_bought_with_stands_beside_it(run: Path) -> None:
    line = ("--task", "objective=slowdown", "--steps", "1")
    rows = json.loads(call(run, *line, "--json").stdout)
    task = read_task(["objective=slowdown"], load_meta_policy(run).task)
    jobsets = task.jobsets(Split.HELD_OUT, range(rows[0]["jobsets"]))
    sjf = next(row for row in rows if row["policy"] == "sjf")
    schedule = evaluate(get_heuristic("sjf", task.world), jobsets, task.world)
    assert sjf["cost"] == pytest.approx(schedule.slowdown.mean())
    assert sjf["wait"] == pytest.approx((schedule.start - schedule.arrival).mean())
    assert sjf["utilization"] == pytest.approx(utilization(schedule).mean())
    text = call(run, *line).stdout
    assert "util" in text
    assert "longest" in text


def test_the_table_can_be_tracked(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = record_with(monkeypatch)
    out = tmp_path / "adapted"
    call(run, "--task", "objective=makespan", "--steps", "1", "--out", str(out), "--track")
    rows = read_table(out / "adaptation.csv", ["ratio"])
    assert recorder.points["ratio", 1] == number(rows[1], "ratio")
    assert {"reference/sjf", "reference/tetris"} <= {name for name, _ in recorder.points}
    assert recorder.files == ["adaptation.csv"]


def test_a_meta_trained_run_uses_its_learned_rates_unless_told_otherwise(tmp_path: Path) -> None:
    run = make_scorer(tmp_path / "fomaml", *FOMAML, rates=4.0)
    args = ("--task", "objective=makespan", "--steps", "1", "--json", "--decode", "sample")
    learned, same, other = (
        json.loads(call(run, *args, *rate).output)
        for rate in ((), ("--rate", "4"), ("--rate", "50"))
    )
    assert learned == same
    assert learned[1]["cost"] != other[1]["cost"]
    assert learned[0] == other[0]


def test_a_task_can_be_one_of_a_family_or_a_file_with_changes(run: Path, tmp_path: Path) -> None:
    family = make_family(tmp_path / "small.yaml")
    said = call(run, "--task", f"{family}:1", "--steps", "1").output
    assert "small:1: " in said
    (tmp_path / "jobs.csv").write_text(TRACE)
    (tmp_path / "mine.yaml").write_text("objective: makespan\nworkload: {trace: jobs.csv}\n")
    said = call(run, "--task", str(tmp_path / "mine.yaml"), "--steps", "1").output
    assert "mine: makespan, trace jobs.csv" in said
    said = call(
        run, "--task", str(tmp_path / "mine.yaml"), "--task", "objective=slowdown", "--steps", "1"
    ).output
    assert "mine, changed: slowdown, trace jobs.csv" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--task", "objective=slowdwon"), "did you mean 'slowdown'"),
        (("--task", "workload.laod=1"), "did you mean 'workload.load'"),
        (("--task", "workload.load=9"), "load 9 is out of reach"),
        (("--task", "workload.trace=no.csv"), "cannot read the trace"),
        (("--task", "nowhere.yaml"), "there is no file nowhere.yaml of a task"),
        (("--task", "objectivs:1"), "did you mean 'objectives'"),
        (("--task", "makespan"), "as in objectives:3, my_task.yaml, or objective=makespan"),
        (("--task", "a:1", "--task", "b:2"), "a task is named once"),
        (
            ("--task", "objectives:1"),
            "cannot be adapted to a world with capacity (10, 10) and horizon 20",
        ),
        (
            ("--task", "world.cluster.horizon=9"),
            "cannot be adapted to a world with horizon 9, because it was trained in one with "
            "horizon 8, where features differ",
        ),
        (("--task", "objective=makespan", "--episodes", "5"), "5 episodes and 4 jobsets"),
        (("--task", "objective=makespan", "--rate", "0"), "--rate"),
        ((), "such as --task objective=makespan"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    run: Path,
    tmp_path: Path,
    args: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert cli.run(cli.metasched, ["adapt", str(run), *args, "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert (captured.out, out.exists()) == ("", False)


def test_a_policy_that_cannot_be_adapted_names_one_that_can(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(cli.metasched, ["adapt", "hpc-order", "--task", "objective=makespan"]) == 2
    error = capsys.readouterr().err
    assert "only a bilinear_scorer or set_scorer can be adapted" in error
    assert "metasched train hpc-maml trains one; to go on training this one, set" in error


def test_a_run_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(cli.metasched, ["adapt", "runs/none", "--task", "objectives:1"]) == 2
    assert "there is no trained policy in runs/none" in capsys.readouterr().err
