"""Changes to the plain data of a config: ``--set``, and settings of a trial."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.spec import WorldSpec
from cluster_env.worlds import WORLDS
from rllib_configs.extensions import load_extensions
from rllib_configs.migration import new_key, new_value
from rllib_configs.options import TrainingSection, goes_with, training_section
from rllib_configs.yaml_text import MAX_DEPTH, YAMLFault, parse_yaml

Changes = Iterable[str] | Mapping[str, Any]
"""Texts of the form ``key=value``, or values by their keys."""


def change(data: dict[str, Any], changes: Changes) -> None:
    """Makes changes to plain data, in place.

    A change that chooses another world, workload, algorithm or network takes out of the data what
    that one does not have. What the changes themselves set stays, so that it is refused later.
    ``task.workload.trace=jobs.csv`` is short for the workload of that kind with that path.

    Args:
        data: of a config, or of a part of one under its place in the whole, as in
            ``{"task": ...}``.
        changes: texts of the form ``training.lr=3e-4``, whose values are read as YAML, or values by
            their keys.

    Raises:
        InputError: if a text cannot be read, or a key lies below one that holds no settings.
    """
    load_extensions()
    settings = []
    for key, value in _pairs(changes):
        today = new_key(key)
        settings.append((today, new_value(today, value)))
    chosen = dict(settings)
    _choose_training(data, chosen)
    spec = _choose_world(data, chosen)
    settings = [long for short in settings for long in _written_out(spec, *short)]
    _choose_workload(data, spec, dict(settings))
    for key, value in settings:
        _apply(data, key, value)


def changed_keys(changes: Changes) -> set[str]:
    """The keys that are changed, by their names of today.

    Raises:
        InputError: if a text cannot be read.
    """
    return {new_key(key) for key, _ in _pairs(changes)}


def _pairs(changes: Changes) -> Iterable[tuple[str, Any]]:
    return changes.items() if isinstance(changes, Mapping) else map(parse_override, changes)


def parse_override(override: str) -> tuple[str, Any]:
    """Key and value of ``key=value``, the value read as YAML.

    Raises:
        InputError: if there is no ``=``, or the value cannot be read.
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError(
            f"--set takes key=value, for instance training.lr=3e-4, not '{shortened(override)}'"
        )
    try:
        value = parse_yaml(text)
    except YAMLFault as error:
        raise InputError(f"the value in --set {shortened(override)} {error}") from None
    if isinstance(value, str):  # YAML 1.1 reads 3e-4 as text
        with contextlib.suppress(ValueError):
            value = float(value)
    return key, value


def flattened(data: Mapping[str, Any], key: str = "") -> dict[str, Any]:
    """Plain data as changes: values by their keys; an objective's weights are one value."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        place = f"{key}.{name}" if key else str(name)
        if isinstance(value, Mapping) and value and name != "objective":
            found.update(flattened(value, place))
        else:
            found[place] = value
    return found


def _choose_training(data: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Takes out what another algorithm or network does not have."""
    training = data.get("training")
    keys = {name: f"training.{name}" for name in ("algorithm", "network")}
    if not isinstance(training, dict) or not any(key in chosen for key in keys.values()):
        return
    names = {
        name: chosen.get(key, training.get(name, TrainingSection.model_fields[name].default))
        for name, key in keys.items()
    }
    with contextlib.suppress(InputError, TypeError):  # which is told when the whole is checked
        section = training_section(**names)
        for option in [name for name in training if not goes_with(name, section)]:
            del training[option]


def _choose_world(data: dict[str, Any], chosen: Mapping[str, Any]) -> WorldSpec:
    """Takes out what another world does not have, and says which one it is."""
    task = data.get("task")
    world = task.get("world") if isinstance(task, dict) else None
    before = world.get("kind") if isinstance(world, dict) else None
    before = before if before in WORLDS.names() else WORLDS.names()[0]
    after = chosen.get("task.world.kind", before)
    if after == before or after not in WORLDS.names():
        return WORLDS.get(before)
    spec = WORLDS.get(after)
    if isinstance(world, dict):
        _keep(world, [entry.name for entry in fields(spec.world)])
    workload = task.get("workload") if isinstance(task, dict) else None
    if isinstance(workload, dict) and _is_named(spec, workload.get("kind")):
        source, name = WORLDS.get(before).workloads, str(workload["kind"])
        same = source.today(name) in source.names() and source.get(name) == spec.workloads.get(name)
        if not same:
            _keep(workload, ["path"])  # a log's windows are in other units in every world
    elif isinstance(task, dict):
        task.pop("workload", None)
    return spec


def _choose_workload(data: dict[str, Any], spec: WorldSpec, chosen: Mapping[str, Any]) -> None:
    """Takes out what another workload does not have."""
    task = data.get("task")
    workload = task.get("workload") if isinstance(task, dict) else None
    name = chosen.get("task.workload.kind", "")
    if isinstance(workload, dict) and _is_named(spec, name):
        entry = spec.workloads.get(name)
        before = workload.get("kind", spec.workloads.names()[0])
        other = spec.workloads.get(before) if _is_named(spec, before) else entry
        own = {*entry.own, *other.own} if other is not entry else set()
        _keep(workload, [key for key in entry.names if key not in own])


def _is_named(spec: WorldSpec, name: Any) -> bool:
    """Whether a world has a workload of that name, or of that old name."""
    return isinstance(name, str) and spec.workloads.today(name) in spec.workloads.names()


def _keep(table: dict[str, Any], names: Iterable[str]) -> None:
    for name in set(table) - {"kind", *names}:
        del table[name]


def _written_out(spec: WorldSpec, key: str, value: Any) -> list[tuple[str, Any]]:
    """A change, where ``task.workload.KIND=path`` may stand for the kind and the path."""
    place, _, name = key.rpartition(".")
    if place != "task.workload" or not _is_named(spec, name):
        return [(key, value)]
    if "path" not in spec.workloads.get(name).names:
        return [(key, value)]
    if value is None:
        return [("task.workload.kind", spec.workloads.names()[0])]
    return [("task.workload.kind", name), ("task.workload.path", value)]


def _apply(data: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    if len(sections) > MAX_DEPTH:
        raise InputError(f"'{shortened(key)}' is no setting: no config is as deep")
    place = data
    for section in sections:
        if place.get(section) is None:  # not given, or null
            place[section] = {}
        inner = place[section]
        if not isinstance(inner, dict):
            raise InputError(f"'{key}' cannot be set, because '{section}' holds no settings")
        place = inner
    place[last] = value
