"""The ordinary commands work on the accrual world by its registration alone."""

import csv
import json
from pathlib import Path

import pytest

from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config, parse_section, write_config
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.sweeps.tiny import Quiet
from tune_jobs import cli
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.sweeping import run_sweep

# Ray changes the process that it starts in: before the first test of the module.
pytestmark = pytest.mark.usefixtures("local_ray")


def test_policies_are_compared_by_utility(tmp_path: Path) -> None:
    line = ["--config", "accrual-smoke", "--policies", "none,aggressive:both,density"]
    rates = ["--at", "0.1,0.2", "--jobsets", "6", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, ["compare", *line, *rates]) == 0
    with (tmp_path / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rate"]) for row in rows] == [0.1] * 3 + [0.2] * 3
    for none, aggressive, density in (rows[:3], rows[3:]):
        assert float(aggressive["utility"]) > float(density["utility"]) > float(none["utility"])


def test_pools_are_compared_under_every_rule(tmp_path: Path, capsys) -> None:
    pool = ["--set", "task.world.machines=2", "--set", "task.workload.window=100"]
    line = ["--config", "accrual-smoke", *pool, "--at", "0.4", "--jobsets", "2"]
    assert cli.run(cli.metasched, ["compare", *line, "--out", str(tmp_path)]) == 0
    assert "2 machines of 24 processors" in capsys.readouterr().out
    with (tmp_path / "comparison.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["machines"] for row in rows} == {"2"}
    assert {"none", "rulebase", "edf", "dasa", "lbesa"} <= {row["policy"] for row in rows}


def test_a_config_that_makes_no_sense_is_one_sentence(tmp_path: Path, capsys) -> None:
    line = ["compare", "--config", "accrual-smoke", "--out", str(tmp_path)]
    assert cli.run(cli.metasched, [*line, "--set", "task.workload.utility=1:0 2:1"]) == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert "must not rise" in said
    assert len(said) < 500


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a scorer of candidates that nobody trained."""
    run = tmp_path_factory.mktemp("runs") / "scorer"
    config = load_config("accrual-smoke", ["task.workload.window=60"])
    policy = untrained_policy(config, 0)
    write_policy(policy.weights, config, run / "policy")
    write_config(config, run / "config.yaml")
    return run


def test_a_scorer_is_adapted_to_another_time_utility_function(scorer: Path, capsys) -> None:
    sizes = ["--steps", "3", "--episodes", "4", "--jobsets", "2", "--evaluate", "8", "--json"]
    sizes += ["--rate", "100"]  # so large that the likeliest actions change
    task = ["--task", "workload.utility=square", "--task", "workload.rate=0.3"]
    assert cli.run(cli.metasched, ["adapt", str(scorer), *task, *sizes]) == 0
    rows = json.loads(capsys.readouterr().out)
    steps = [row for row in rows if "step" in row]
    assert [row["step"] for row in steps] == [0, 1, 2, 3]
    assert steps[0]["cost"] != steps[3]["cost"]
    assert {row["policy"].partition(":")[0] for row in rows} >= {"none", "aggressive", "dasa"}


def test_the_guard_decides_between_a_scorer_and_the_rules(
    scorer: Path, tmp_path: Path, capsys
) -> None:
    line = ["compare", "--decide", "--policies", str(scorer), "--jobsets", "6", "--json"]
    line += ["--out", str(tmp_path)]
    assert cli.run(cli.metasched, line) == 0
    decided = json.loads(capsys.readouterr().out)
    used = json.loads((tmp_path / "decision.json").read_text())["use"].partition(":")[0]
    assert used in {"aggressive", "rulebase"}  # nobody trained the scorer
    assert decided["chosen"].startswith(used)


@pytest.mark.integration
def test_servers_are_trained_resumed_and_compared(local_ray: None, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    sizes = ["training.jobsets=3", "task.workload.window=200", "evaluation.jobsets=4"]
    small = [f"--set={one}" for one in (*sizes, "training.iterations=2", "task.workload.rate=0.2")]
    train = ["train", "fuzzy-td", "--set", "tracking.enabled=false", "--runners", "0", *small]
    assert cli.run(cli.metasched, [*train, "--run", str(run)]) == 0
    more = [
        "train",
        "--resume",
        str(run),
        "--set",
        "tracking.enabled=false",
        "--set",
        "training.iterations=3",
    ]
    assert cli.run(cli.metasched, more) == 0
    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["iteration"] for row in rows] == ["1", "2", "3"]
    learned = [[float(row[f"values/p_{rule}"]) for rule in ("SSS", "LLS")] for row in rows]
    assert len({tuple(one) for one in learned}) == 3
    compared = ["compare", "--policies", f"none,{run}", "--at", "0.2", "--jobsets", "4"]
    assert cli.run(cli.metasched, [*compared, "--out", str(tmp_path / "table")]) == 0
    with (tmp_path / "table" / "comparison.csv").open() as file:
        none, policy = csv.DictReader(file)
    assert float(policy["utility"]) > float(none["utility"])


@pytest.mark.integration
@pytest.mark.slow
def test_rates_of_learning_are_tuned(local_ray: None, tmp_path: Path) -> None:
    sizes = {"iterations": 1, "jobsets": 2}
    settings = {f"training.{name}": value for name, value in sizes.items()}
    settings |= {"task.workload.window": 100, "evaluation.jobsets": 2, "tracking.enabled": False}
    rates = {"training.lr": {"grid": [0.003, 0.03]}}
    fields = {"name": "rates", "preset": "fuzzy-td", "search": "grid", "concurrent": 1}
    rule = parse_section(Sweep, {**fields, "settings": settings, "space": rates})
    result = run_sweep(rule, runs=tmp_path, table=Quiet())
    assert result.counts["finished"] == 2
    learned = [trial.run.history.rows()[0]["values/p_LLS"] for trial in result.folder.started()]
    assert learned[0] != learned[1]
