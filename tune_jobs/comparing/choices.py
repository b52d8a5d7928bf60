"""From what a user asks for to what policies are compared on."""

from collections.abc import Sequence

from cluster_env.core.errors import InputError
from cluster_env.evaluation import objective_metric
from cluster_env.objectives import get_objective
from rllib_configs.loading import load_config
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.policy_specs import (
    Decode,
    PolicySpec,
    TrainedRun,
    heuristic_spec,
    is_heuristic,
    learned_specs,
)

STEPS_PER_WINDOW = 10
"""How many times as long as the window an episode may be at least, where --window is given."""


def parse_values(text: str) -> list[float]:
    """Reads ``0.7,1.1``.

    Raises:
        InputError: if a part is no number.
    """
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values:
        raise InputError(f"--at takes numbers like 0.7,1.1, not '{text}'")
    return values


def choose_config(
    source: str | None,
    overrides: Sequence[str],
    rules: str | None,
    runs: Sequence[TrainedRun],
    window: int | None = None,
) -> ExperimentConfig:
    """The config that says what policies are evaluated on.

    Args:
        source: preset or file; by default the config of the first run, else the preset deeprm.
        overrides: texts of the form ``key=value``.
        rules: name of the rules, if not the config's.
        runs: the trained policies that are compared.
        window: steps in which jobs may arrive, if not the config's. Episodes are then cut at
            `STEPS_PER_WINDOW` times as many at the earliest, unless an override says when.

    Raises:
        InputError: if the config cannot be used.
    """

    def load(changes: Sequence[str]) -> ExperimentConfig:
        if source is None and runs:
            return load_config(runs[0].config_file, changes)
        return load_config(source or "deeprm", changes)

    changes = [*overrides, *([f"task.world.rules={rules}"] if rules else [])]
    if window is None:
        return load(changes)
    given = [text.partition("=")[0].strip() for text in overrides]
    if "task.workload.window" in given:
        raise InputError("--window and --set task.workload.window say the same; give one of them")
    # How long episodes are is asked with a window that no config refuses as too long for them.
    max_time = load([*changes, f"task.workload.window={min(window, 2)}"]).task.world.max_time
    enough = STEPS_PER_WINDOW * window
    if "task.world.max_time" not in given and max_time < enough:
        changes.append(f"task.world.max_time={enough}")
    return load([*changes, f"task.workload.window={window}"])


def order_specs(
    policies: Sequence[str], runs: Sequence[TrainedRun], decode: Decode
) -> list[PolicySpec]:
    """Heuristics in the order in which they were named, then what was learned."""
    heuristics = [heuristic_spec(name) for name in policies if is_heuristic(name)]
    return [*heuristics, *learned_specs(runs, decode)]


def metric_of(objective: str | None, config: ExperimentConfig) -> str:
    """Name of the metric of an objective."""
    chosen = config.task.build_objective() if objective is None else get_objective(objective)
    return objective_metric(chosen).name
