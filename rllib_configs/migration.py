"""Configs that were written before version 0.1.0: from the old keys to today's."""

import copy
from collections.abc import Mapping
from typing import Any

from cluster_env.core.errors import InputError
from rllib_configs.options import goes_with, training_section

_MOVED = {
    "task.cluster": "task.world.cluster",
    "task.rules": "task.world.rules",
    "task.max_time": "task.world.max_time",
    "meta": "training",
    "meta.agreement": "training.shrink",
    "training.agreement": "training.shrink",
    "training.short_first": "training.window_curriculum",
    "training.tame": "training.equalize",
    "training.shortcut": "training.skip_connection",
}
"""Keys by their old names; those inside a table move with it."""
_GONE = {"resources": ("num_learners",)}
"""Settings that are gone, on which no result depended; runs of before are read without them."""
_RENAMED = {"training.network": {"slot_scorer": "set_scorer"}}
"""Values by their old names, by today's key."""
_WRITTEN = {"rmsprop_eps", "clip", "gae_lambda"}
"""Settings that stand together in ``training`` only where metasched had written all there were."""


def new_key(key: str) -> str:
    """Today's key of a setting that may be named by an old one."""
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        moved = _MOVED.get(".".join(parts[:length]))
        if moved is not None:
            return ".".join([moved, *parts[length:]])
    return key


def new_value(key: str, value: Any) -> Any:
    """Today's value of a setting that may have an old one.

    Args:
        key: today's.
        value: maybe an old one.

    Raises:
        InputError: for what is gone: the algorithm rllib_ppo, and processes of learners.
    """
    section, _, name = key.partition(".")
    if name in _GONE.get(section, ()):
        raise InputError(
            f"the setting {key} is gone: runners compute the gradients where they sampled, and the "
            "step along their sum takes the driver a moment; set resources.num_runners alone"
        )
    if key == "training.algorithm" and value == "rllib_ppo":
        raise InputError(
            "the algorithm rllib_ppo is gone, because ppo learns the same faster; train with the "
            "preset deeprm-ppo, or load this run with the version that trained it"
        )
    names = _RENAMED.get(key, {})
    return names.get(value, value) if isinstance(value, str) else value


def migrate(data: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data of a config under today's keys; what has them already stays as it is.

    Args:
        data: of a run's or a policy's config, of a file of a user's own, or of a part of one under
            its place in the whole, as in ``{"task": ...}``. They are not changed.

    Raises:
        InputError: if they name an algorithm that is gone.
    """
    made = copy.deepcopy(dict(data))
    if made.get("meta", ...) is None:
        del made["meta"]
    for old in sorted(_MOVED, key=lambda key: -key.count(".")):
        _move(made, old, _MOVED[old])
    for section, names in _GONE.items():
        if isinstance(made.get(section), dict):
            made[section] = {k: v for k, v in made[section].items() if k not in names}
    _move_trace(made.get("task"))
    training = made.get("training")
    if isinstance(training, dict):
        for name, value in training.items():
            training[name] = new_value(f"training.{name}", value)
        if set(training) >= _WRITTEN:
            made["training"] = _used(training)
    return made


def _move(data: dict[str, Any], old: str, new: str) -> None:
    """Takes what stands at a key to another one, where tables are united."""
    *sections, last = old.split(".")
    place: Any = data
    for section in sections:
        place = place.get(section) if isinstance(place, dict) else None
    if not isinstance(place, dict) or last not in place:
        return
    value = place.pop(last)
    *sections, last = new.split(".")
    place = data
    for section in sections:
        if not isinstance(place.get(section), dict):
            place[section] = {}
        place = place[section]
    if isinstance(value, dict) and isinstance(place.get(last), dict):
        place[last].update(value)
    else:
        place[last] = value


def _move_trace(task: Any) -> None:
    """``trace: jobs.csv`` has become a kind of workload with a path."""
    workload = task.get("workload") if isinstance(task, dict) else None
    if isinstance(workload, dict) and "trace" in workload:
        path = workload.pop("trace")
        if path is not None:
            workload.update(kind="trace", path=path)


def _used(training: dict[str, Any]) -> dict[str, Any]:
    """The settings that the algorithm and the network have; what was written names all others."""
    section = training_section(training["algorithm"], training["network"])
    gone = {"decisions"}
    return {
        name: value
        for name, value in training.items()
        if name not in gone and goes_with(name, section)
    }
