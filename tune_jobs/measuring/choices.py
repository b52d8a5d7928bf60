"""From what a user asks for to what policies are compared on."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.evaluation import get_metric
from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.worlds import WorldSpec, get_spec
from rllib_configs.config.changes import Changes, changed_keys
from rllib_configs.config.loading import changed_config, read_config
from rllib_configs.config.schema import ExperimentConfig
from tune_jobs.commands.shared import Evaluation
from tune_jobs.measuring.protocol import EvaluationProtocol
from tune_jobs.measuring.trained_runs import TrainedRun


def choose_config(
    source: str | Path | ExperimentConfig | None,
    overrides: Changes,
    task_options: Mapping[str, Any],
    runs: Sequence[TrainedRun],
) -> ExperimentConfig:
    """The config that says what policies are evaluated on.

    Args:
        source: preset or file, or a config; by default that of the first run, else the preset
            deeprm.
        overrides: changes to it.
        task_options: values, or texts of them, by names of the world's options.
        runs: the trained policies that are compared.

    Raises:
        InputError: if the config cannot be used.
    """
    if isinstance(source, ExperimentConfig):
        data = source.to_dict()
    else:
        named = "deeprm" if source is None else str(source)
        data = read_config(runs[0].config_file if source is None and runs else named)
    return changed_config(data, overrides, task_options)


def choose_comparison(
    source: str | Path | ExperimentConfig | None,
    overrides: Changes,
    task_options: Mapping[str, Any],
    runs: Sequence[TrainedRun],
    warmup: int | None,
    guarded: bool = False,
) -> tuple[ExperimentConfig, int]:
    """The config of `choose_config`, and a warm-up, both in a steady state if nobody asks for less.

    The warm-up is in steps; None where the user has not said it. A guard adds what the user does
    not say, too (`Presentation.guarded`).
    """
    config = choose_config(source, overrides, task_options, runs)
    shown = get_spec(config.task.world.kind).presentation
    said = {f"task.{shown.options[name].key}" for name in task_options} | changed_keys(overrides)
    task = config.task.build()
    steady, steps = steady_operation(task, said)
    usual = dict(steady)
    if guarded:
        added = shown.guarded(task)
        usual |= {
            name: added[name] for name in added if f"task.{shown.options[name].key}" not in said
        }
    if usual:
        config = choose_config(source, overrides, {**task_options, **usual}, runs)
    return config, steps if warmup is None else warmup


def steady_operation(task: Task, said: Container[str]) -> tuple[Mapping[str, Any], int]:
    """What measures a task in a steady state (`Presentation.steady`), unless the user says it.

    The user has said settings by keys like ``task.workload.window``. Returns values by names of the
    world's options, and a warm-up.
    """
    shown = task.spec.presentation
    steady, warmup = shown.steady(task)
    if any(f"task.{shown.options[name].key}" in said for name in steady):
        return {}, 0
    return steady, warmup


def parse_limits(texts: Sequence[str], spec: WorldSpec) -> dict[str, float]:
    """The world's limits of side metrics, changed by texts like ``wait=0.5`` and ``wait=off``.

    Raises:
        InputError: if there is no such metric, a limit is no number from 0, or a metric has two.
    """
    limits, said = dict(spec.side_metrics), set[str]()
    for text in texts:
        name, _, value = text.partition("=")
        get_metric(name)
        if name in said:
            raise InputError(f"--limit is given twice for {name}; give one limit for each metric")
        said.add(name)
        try:
            limits[name] = math.inf if value == "off" else float(value)
        except ValueError:
            limits[name] = math.nan
        if not limits[name] >= 0:
            raise InputError(
                "--limit takes a metric and a share, as wait=0.5 or wait=off, not "
                f"'{shortened(text)}'"
            )
    return limits


def heuristics_of(options: Evaluation) -> list[str]:
    """Names of the heuristics of the world that is asked for, where no run says it."""
    if isinstance(options.on, Task):
        return list(options.on.spec.heuristics.names())
    config = choose_config(options.on, options.changes, {}, ())
    return list(get_spec(config.task.world.kind).heuristics.names())


def protocol_of(
    options: Evaluation,
    runs: Sequence[TrainedRun],
    num_guard_jobsets: int = 0,
    guarded: bool = False,
) -> EvaluationProtocol:
    """What options ask for, for some runs; raises `InputError` if it cannot be had.

    See `choose_comparison` for what is guarded.
    """
    if isinstance(options.on, Task):
        if changed_keys(options.changes):
            raise InputError("changes are made to a config or a preset, and not to a task")
        task, warmup = options.on, options.warmup or 0
    else:
        config, warmup = choose_comparison(
            options.on, options.changes, options.task_options, runs, options.warmup, guarded
        )
        task = config.task.build(config.name, options.seed)
    if options.objective is not None:
        task = replace(task, objective=get_objective(options.objective))
    limits = None if options.limits == () else options.limits
    if limits is not None and not isinstance(limits, Mapping):
        limits = parse_limits(limits, task.spec)
    for name, limit in (limits or {}).items():
        get_metric(name)
        if not limit >= 0:
            raise InputError(f"a limit is a share from 0, but {limit:g} was given for {name}")
    return EvaluationProtocol(
        task,
        task.objective.metric.name,
        num_jobsets=options.num_jobsets,
        num_episodes=options.num_episodes,
        warmup=warmup,
        limits=limits,
        num_guard_jobsets=num_guard_jobsets,
    )
