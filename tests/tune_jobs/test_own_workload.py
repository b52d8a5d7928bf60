"""Jobs of a user's own, from the command line: training, resuming, comparing, figures."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from matplotlib.text import Text

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, summarize
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.log import DeepRMLog
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy
from tests.cluster_env.worlds.deeprm.random_trace import make_trace
from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import compare, figure
from tune_jobs.figures import FigureRequest, learning_curves, make_figure
from tune_jobs.figures.comparison import draw
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import run_training
from tune_jobs.runs.validation import Validation

SMALL = ("task.world.cluster.num_slots=3", "task.world.cluster.backlog_view=6", "training.hidden=4")


def run(command, *args: str) -> Result:
    return CliRunner().invoke(command, ["--jobsets", "10", *args], catch_exceptions=False)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_trace(tmp_path_factory.mktemp("trace") / "my jobs.csv")


@pytest.fixture(scope="module")
def trained(trace: Path) -> Path:
    """A run directory of a policy that was trained on the trace."""
    folder = trace.parent / "trained"
    (folder / "policy").mkdir(parents=True)
    made_up = make_run(
        trace.parent / "made-up",
        "name=mine",
        "task.world.cluster.capacity=[10, 10]",
        "task.world.cluster.horizon=20",
    )
    text = (made_up / "config.yaml").read_text()
    workload = f"  workload: {{kind: trace, path: {trace}}}\n"
    text = re.sub(r"  workload:\n(    .*\n)*", workload, text)
    for place in ("config.yaml", "policy/config.yaml"):
        (folder / place).write_text(text)
    for file in ("metrics.csv", "policy/weights.pt"):
        (folder / file).write_bytes((made_up / file).read_bytes())
    return folder


def test_a_trace_is_compared_at_its_own_load_on_held_out_jobs(trace: Path) -> None:
    args = ("--policies", "sjf", "--set", f"task.workload.trace={trace}", "--window", "50")
    row = json.loads(run(compare.command, *args, "--json").stdout)[0]
    workload = DeepRMLog(trace)
    jobsets = sample_jobsets(workload, 0, Split.HELD_OUT, range(10))
    means = summarize(evaluate(get_heuristic("sjf", DeepRM()), jobsets, DeepRM())).means
    assert row["slowdown"] == pytest.approx(means["slowdown"])
    part = workload.part(Split.HELD_OUT)
    assert (row["load"], row["arrival_rate"]) == (part.load, part.arrival_rate)
    text = " ".join(run(compare.command, *args).stdout.split())
    assert f"Trace my jobs.csv, load {part.load:.0%}: 10 unseen jobsets" in text
    assert "intervals say nothing of other jobs" in text


def test_a_policy_of_a_trace_and_one_of_made_up_jobs_meet(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    policies = f"sjf,{trained},{trained.parent / 'made-up'}"
    text = run(compare.command, "--policies", policies, "--out", str(out)).stdout
    assert "mine (trained on trace my jobs.csv)" in text
    assert "mine (trained at 70%)" in text
    drawn = draw(out / "comparison.csv").findobj(Text)  # type: ignore[attr-defined]
    shown = "\n".join(label.get_text() for label in drawn)
    assert "Mean slowdown on trace my jobs.csv, load " in shown
    assert "(trained on trace my jobs.csv,\n1 seed)" in shown
    rows = json.loads(run(compare.command, "--policies", policies, "--json").stdout)
    assert [row["key"] for row in rows] == ["sjf", "mine@my_jobs.csv", "mine@70%"]
    assert [row["trained_at"] for row in rows] == [None, None, 0.7]


def test_its_policy_can_be_compared_at_made_up_loads_too(trained: Path) -> None:
    args = ("--policies", str(trained), "--set", "task.workload.trace=null", "--json")
    rows = json.loads(run(compare.command, *args, "--loads", "0.5,0.9").stdout)
    assert [(row["load"], row["trace"]) for row in rows] == [(0.5, ""), (0.9, "")]


def test_a_trace_has_one_load_only(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"the load of trace my jobs\.csv cannot be changed, because"
    ):
        run(compare.command, "--policies", f"sjf,{trained}", "--loads", "0.5")
    with pytest.raises(InputError, match=r"draws lines, but trace my jobs\.csv has only one value"):
        run(figure.command, "deeprm-fig4", "--runs", str(trained), "--out", str(tmp_path))


def test_learning_curves_name_the_trace(trained: Path, tmp_path: Path) -> None:
    _, table = make_figure("learning-curves", FigureRequest(runs=[str(trained)]), tmp_path)
    drawn = learning_curves.draw(table).findobj(Text)  # type: ignore[attr-defined]
    load = DeepRMLog(trained.parent / "my jobs.csv", window=50).part(Split.VALIDATION).load
    shown = "\n".join(label.get_text() for label in drawn)
    assert f"Learning curves on trace my jobs.csv, load {load:.0%}" in shown


def test_validation_says_what_it_rests_on(trace: Path) -> None:
    config = load_config("deeprm-smoke", [f"task.workload.trace={trace}"])
    told = Validation(config).describe({"sjf": 2.0})
    assert re.search(
        r"of the heuristics, trace my jobs\.csv, load \d+%, 10 validation jobsets", told
    )
    told = Validation(load_config("deeprm-smoke")).describe({"sjf": 2.0})
    assert "of the heuristics, load 70%, 10 validation jobsets: sjf 2" in told


@pytest.mark.integration
def test_what_a_trace_trained_can_be_used_from_elsewhere(
    local_ray: None, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    config = load_config(
        "deeprm-smoke",
        [
            "task.workload.trace=my jobs.csv",
            f"runs={tmp_path}",
            "tracking.enabled=false",
            *SMALL,
            "training.iterations=2",
        ],
    )
    result = run_training(config)
    assert result.num_iterations == 2
    assert result.evaluation["num_jobs"] > 0
    monkeypatch.chdir(tmp_path)
    resumption = find_resumption(result.run.path, ["training.iterations=3"])
    assert resumption.config.task.workload.path == trace
    assert load_policy(result.run.path)[1].task == config.task
