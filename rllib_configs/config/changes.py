"""Changes to the plain data of a config: ``--set``, and settings of a trial."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.spec import WorldSpec
from cluster_env.core.yaml_text import MAX_DEPTH, YAMLFault, parse_yaml
from cluster_env.worlds import WORLDS
from rllib_configs.config.extensions import load_extensions
from rllib_configs.config.options import TrainingSection, goes_with, training_section
from rllib_configs.config.registries import CHOICES

Changes = Iterable[str] | Mapping[str, object]
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
    settings = _pairs(changes)
    _choose_training(data, dict(settings))
    spec = _choose_world(data, dict(settings).get("task.world.kind"))
    settings = [long for short in settings for long in _written_out(spec, *short)]
    chosen = str(dict(settings).get("task.workload.kind", ""))
    if _is_named(spec, chosen):  # take out what another workload does not have
        workload, entry = _table(_table(data, "task"), "workload"), spec.workloads.get(chosen)
        before = workload.get("kind", spec.workloads.names()[0])
        other = spec.workloads.get(before) if _is_named(spec, before) else entry
        own = {*entry.own, *other.own} if other is not entry else set()
        _keep(workload, [key for key in entry.names if key not in own])
    for key, value in settings:
        *sections, last = key.split(".")
        if len(sections) > MAX_DEPTH:
            raise InputError(
                f"'{shortened(key)}' is no setting: it has more parts than any key of a config"
            )
        place = data
        for section in sections:
            if place.get(section) is None:  # not given, or null
                place[section] = {}
            if not isinstance(place[section], dict):
                raise InputError(f"'{key}' cannot be set, because '{section}' holds no settings")
            place = place[section]
        place[last] = value


def changed_keys(changes: Changes) -> set[str]:
    """The keys that are changed; where a table is set, its own and those in it.

    Raises:
        InputError: if a text cannot be read.
    """
    pairs = _pairs(changes)
    return {key for key, _ in pairs} | set(flattened(dict(pairs)))


def _pairs(changes: Changes) -> list[tuple[str, Any]]:
    if not isinstance(changes, Mapping):
        return list(map(parse_override, changes))
    for key in changes:
        if not isinstance(key, str):
            raise InputError(f"the key of a change is text, as training.lr, not {key!r}")
    return list(changes.items())


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
        if isinstance(value, Mapping) and value and place.rpartition(".")[2] != "objective":
            found.update(flattened(value, place))
        else:
            found[place] = value
    return found


def _choose_training(data: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Takes out what another algorithm or network does not have."""
    training = data.get("training")
    keys = {registry.kind: f"training.{registry.kind}" for registry in CHOICES}
    if not isinstance(training, dict) or not any(key in chosen for key in keys.values()):
        return
    names = {
        name: chosen.get(key, training.get(name, TrainingSection.model_fields[name].default))
        for name, key in keys.items()
    }
    with contextlib.suppress(InputError, TypeError):  # which is told when the whole is checked
        section = training_section(**names)
        _keep(training, [option for option in training if goes_with(option, section)])


def _choose_world(data: dict[str, Any], chosen: Any) -> WorldSpec:
    """Takes out what another world does not have, and says which one it is."""
    task = _table(data, "task")
    world, workload = _table(task, "world"), _table(task, "workload")
    before = str(world.get("kind"))
    before = before if before in WORLDS.names() else WORLDS.names()[0]
    if chosen in (None, before) or chosen not in WORLDS.names():
        return WORLDS.get(before)
    spec, source = WORLDS.get(chosen), WORLDS.get(before).workloads
    _keep(world, [entry.name for entry in fields(spec.world)])
    if not _is_named(spec, workload.get("kind")):
        task.pop("workload", None)
        return spec
    name = workload["kind"]
    if name not in source.names() or source.get(name) != spec.workloads.get(name):
        _keep(workload, ["path"])  # a log's windows are in other units in every world
    return spec


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table at a key; what is no table is refused when the whole is checked."""
    table = data.get(name)
    return table if isinstance(table, dict) else {}


def _is_named(spec: WorldSpec, name: Any) -> bool:
    """Whether a world has a workload of that name."""
    return isinstance(name, str) and name in spec.workloads.names()


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
