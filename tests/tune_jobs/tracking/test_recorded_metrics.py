"""Training records what the table in the README lists."""

from pathlib import Path

import pytest

from cluster_env.evaluation.metrics import METRICS
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import prepare
from tune_jobs.runs.training import run_training

README = Path(__file__).parents[3] / "tune_jobs" / "README.md"
SMALL = ["training.jobsets=2", "training.episodes_per_jobset=2"]
UNIT = "training.jobsets_per_unit=2"
SMALL += ["resources.num_runners=0"]
CRITIC = [*SMALL, UNIT, "training.critic=true", "training.minibatches=1"]
META = [*SMALL, "training.tasks=2", "training.epochs=1"]
SEARCH = [*SMALL, UNIT, "training.validate_every=1", "training.validation_jobsets=2"]


def listed() -> list[str]:
    """Names in the table."""
    between = README.read_text().partition("<!-- metrics -->\n")[2]
    rows = between.partition("\n<!-- end of metrics -->")[0].splitlines()[2:]
    assert all(row.count("|") == 3 and row.split("|")[2].strip() for row in rows)
    return [name for row in rows for name in names_of(row.split("`")[1])]


def names_of(pattern: str) -> list[str]:
    """``a/{b,c}`` is two names, and ``<metric>`` each metric of a schedule."""
    before, braces, rest = pattern.partition("{")
    inside, _, after = rest.partition("}")
    names = [f"{before}{name}{after}" for name in inside.split(",")] if braces else [pattern]
    return [
        name.replace("<metric>", metric)
        for name in names
        for metric in (METRICS.names() if "<metric>" in name else [""])
    ]


def test_patterns_stand_for_names() -> None:
    assert names_of("time/{a,b}_s") == ["time/a_s", "time/b_s"]
    assert names_of("eval/ratio") == ["eval/ratio"]
    assert names_of("eval/<metric>") == [f"eval/{name}" for name in METRICS.names()]


def test_names_are_unique_and_hold_every_metric_of_a_schedule() -> None:
    assert len(set(listed())) == len(listed())
    assert {f"eval/{name}" for name in METRICS.names()} <= set(listed())


@pytest.mark.integration
@pytest.mark.parametrize(
    ("preset", "overrides"),
    [
        ("deeprm-ppo", CRITIC),
        ("deeprm-maml", META),
        ("hpc-order", SEARCH),
    ],
)
def test_an_iteration_records_what_the_table_lists(
    local_ray: None, preset: str, overrides: list[str]
) -> None:
    algorithm = build_algorithm(prepare(load_config(preset, overrides)))
    try:
        found = iteration_metrics(algorithm.train())
    finally:
        algorithm.stop()
    assert len(found) > 15
    assert set(found) <= set(listed())


@pytest.mark.integration
def test_a_run_records_what_the_table_lists(local_ray: None, tmp_path: Path) -> None:
    smoke = ["tracking.enabled=false", f"runs={tmp_path}", "training.iterations=1"]
    result = run_training(load_config("deeprm-smoke", smoke))
    [row] = result.run.history.rows()
    assert set(row) - {"iteration"} <= set(listed())
    assert any(name.startswith("eval/") for name in row)
