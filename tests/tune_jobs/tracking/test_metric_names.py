"""Training records what the table lists, and the table is what the README shows."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.evaluation.metrics import METRICS
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.loading import load_config
from rllib_configs.registries import prepare
from tune_jobs.runs.training import run_training
from tune_jobs.tracking.metric_names import explain, metric_names, metric_table

README = Path(__file__).parents[3] / "tune_jobs" / "README.md"
SMALL = ["training.jobsets=2", "training.jobsets_per_unit=2", "training.episodes_per_jobset=2"]
SMALL += ["resources.num_runners=0"]
CRITIC = [*SMALL, "training.critic=true", "training.minibatches=1"]
META = [*SMALL, "training.tasks=2", "training.epochs=1", "training.hidden=8"]


def test_names_are_unique_and_explained() -> None:
    found = metric_names()
    assert len({one.name for one in found}) == len(found)
    assert all(one.meaning and not one.meaning.endswith(".") for one in found)
    assert {f"eval/{name}" for name in METRICS.names()} <= {one.name for one in found}


def test_the_readme_shows_the_table() -> None:
    between = README.read_text().partition("<!-- metrics -->\n")[2]
    assert between.partition("\n<!-- end of metrics -->")[0] == metric_table()


def test_what_is_not_in_the_table_is_refused() -> None:
    assert explain("reference/sjf").meaning
    assert explain("eval/class_slowdown(1, 2)").meaning
    for name in ("train/returns", "eval/nothing", "loss"):
        with pytest.raises(InputError, match=f"no run records a metric {name}"):
            explain(name)


@pytest.mark.integration
@pytest.mark.parametrize(("preset", "overrides"), [("deeprm-ppo", CRITIC), ("deeprm-maml", META)])
def test_an_iteration_records_what_the_table_lists(
    local_ray: None, preset: str, overrides: list[str]
) -> None:
    algorithm = build_algorithm(prepare(load_config(preset, overrides)))
    try:
        found = iteration_metrics(algorithm.train())
    finally:
        algorithm.stop()
    assert len(found) > 15
    for name in found:
        explain(name)


@pytest.mark.integration
def test_a_run_records_what_the_table_lists(local_ray: None, tmp_path: Path) -> None:
    smoke = ["tracking.enabled=false", f"runs={tmp_path}", "training.iterations=1"]
    result = run_training(load_config("deeprm-smoke", smoke))
    [row] = result.run.history.rows()
    for name in row:
        if name != "iteration":
            explain(name)
    assert any(name.startswith("eval/") for name in row)
