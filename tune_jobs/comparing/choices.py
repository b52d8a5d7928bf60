"""From what a user asks for to what policies are compared on."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.evaluation import objective_metric
from cluster_env.objectives import get_objective
from cluster_env.worlds import get_kind
from rllib_configs.loading import change, make_config, parse_config, parse_override, read_config
from rllib_configs.migration import new_key
from rllib_configs.schema import ExperimentConfig
from tune_jobs.comparing.policy_specs import PolicySpec, heuristic_spec, learned_specs
from tune_jobs.comparing.trained_runs import Decode, TrainedRun, is_heuristic


def parse_values(text: str) -> list[float]:
    """Reads ``0.7,1.1``.

    Raises:
        InputError: if a part is no number.
    """
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise InputError(f"--at takes numbers like 0.7,1.1, not '{shortened(text)}'")
    return values


def choose_config(
    source: str | None,
    overrides: Sequence[str],
    shorthands: Mapping[str, Any],
    runs: Sequence[TrainedRun],
) -> ExperimentConfig:
    """The config that says what policies are evaluated on.

    Args:
        source: preset or file; by default the config of the first run, else the preset deeprm.
        overrides: texts of the form ``key=value``.
        shorthands: values, or texts of them, by names that the world's kind has shorthands for.
        runs: the trained policies that are compared.

    Raises:
        InputError: if the config cannot be used.
    """
    data = read_config(runs[0].config_file if source is None and runs else source or "deeprm")
    change(data, overrides)
    given = {new_key(parse_override(text)[0]) for text in overrides}
    for name, value in shorthands.items():
        world = parse_config(data).task.world.kind
        short = get_kind(world).shorthands.get(name)
        if short is None:
            raise InputError(f"--{name} means nothing in the world {world}")
        key = f"task.{short.key}"
        if key in given:
            raise InputError(f"--{name} and --set {key} say the same; give one of them")
        change(data, [f"{key}={value}"])
        follows = short.follows(parse_config(data).task)
        settings = {f"task.{key}": setting for key, setting in follows.items()}
        change(data, {key: settings[key] for key in settings if key not in given})
    return make_config(data)


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
