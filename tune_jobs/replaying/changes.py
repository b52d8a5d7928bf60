"""Changes to a machine and its policy, as people write them: ``processors=+64``, ``load=+10%``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown
from cluster_env.core.task import Task
from cluster_env.workloads.log import LogWorkload

POLICY, LOAD = "policy", "load"
UNITS = ("processors", "memory", "gpus")
OPTIONS = ("backfilling", "kill-at-estimate", "max-wait", "run-times")
"""Options of the world that are changed under their own names."""

SETTING = "task."
"""How settings begin that have no shorter name."""

KEYS = (POLICY, *UNITS, LOAD, *OPTIONS)

_AMOUNT = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(%?)")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a log is replayed with.

    Attributes:
        policy: name of a heuristic, or a run directory.
        task_options: values, or texts of them, by names of the world's options.
        overrides: texts of the form ``key=value``.
    """

    policy: str
    task_options: Mapping[str, Any]
    overrides: tuple[str, ...]

    def with_option(self, name: str, key: str, value: Any) -> "Setup":
        """The same with another value of an option, whose key in configs is given."""
        return replace(self.without_settings(key), task_options={**self.task_options, name: value})

    def with_setting(self, key: str, value: str) -> "Setup":
        """The same with another value of a setting."""
        return replace(self.without_settings(key), overrides=(*self._others(key), f"{key}={value}"))

    def without_settings(self, key: str) -> "Setup":
        """The same, where a setting was not said."""
        return replace(self, overrides=self._others(key))

    def _others(self, key: str) -> tuple[str, ...]:
        return tuple(text for text in self.overrides if text.partition("=")[0] != key)


def split_change(text: str) -> tuple[str, str]:
    """Key and value of a change.

    Raises:
        InputError: if it has not both.
    """
    key, sign, value = (part.strip() for part in text.partition("="))
    if not (key and sign and value):
        raise InputError(
            f"a change is written KEY=VALUE, such as policy=sjf:easy or processors=+64, not "
            f"'{shortened(text)}'"
        )
    return key, value


def changed(setup: Setup, changes: Sequence[str], task: Task) -> Setup:
    """A setup after some changes.

    Args:
        setup: of today.
        changes: such as ``policy=sjf:easy``, ``processors=+64``, ``load=+10%``, ``max-wait=5d`` or
            ``task.world.priority.age=500``.
        task: what today's setup stands for: relative changes are of its machine and its load.

    Raises:
        InputError: for an unknown key, a key that is given twice, or an impossible value.
    """
    after = setup
    if _scaled_load(task):  # which would depend on the changed machine
        after = _stretched(after, task, 1.0)
    seen = set[str]()
    for text in changes:
        key, value = split_change(text)
        if key in seen:
            raise InputError(f"--change {key} is given twice; give one value")
        seen.add(key)
        after = _after(after, key, value, task)
    return after


def _after(setup: Setup, key: str, value: str, task: Task) -> Setup:
    options = task.spec.presentation.options
    if key == POLICY:
        return replace(setup, policy=value)
    if key in UNITS:
        now = int(getattr(task.world, key, 0))
        if not now:
            raise InputError(f"{key} are not counted on this machine, so they cannot be changed")
        return setup.with_option(key, f"task.{options[key].key}", round(amount(key, value, now)))
    if key == LOAD:
        return _stretched(setup, task, amount(key, value, _load_of(task)) / _load_of(task))
    if key in OPTIONS:
        return setup.with_option(key, f"task.{options[key].key}", value)
    if key.startswith(SETTING):
        named = {f"task.{option.key}": name for name, option in options.items()}
        said = {k: v for k, v in setup.task_options.items() if k != named.get(key)}
        return replace(setup, task_options=said).with_setting(key, value)
    raise unknown("change", key, (*KEYS, f"{SETTING}..."))


def amount(key: str, text: str, now: float) -> float:
    """What a text makes of a number: ``512``, ``+64``, ``-64``, ``+10%``.

    Raises:
        InputError: if it is none of these, or nothing remains.
    """
    parts = _AMOUNT.fullmatch(text)
    if parts is None or (parts[3] and not parts[1]):
        raise InputError(
            f"{key} is a number, or is changed by +64, -64 or +10%, not '{shortened(text)}'"
        )
    number = float(parts[2]) * (now / 100 if parts[3] else 1)
    found = {"": number, "+": now + number, "-": now - number}[parts[1]]
    if found <= 0 or (key in UNITS and round(found) < 1):
        raise InputError(f"{key}={shortened(text)} leaves none of {now:,.6g} {key}")
    return found


def _workload(task: Task) -> LogWorkload:
    workload = task.workload
    assert isinstance(workload, LogWorkload)
    return workload


def _scaled_load(task: Task) -> float:
    return _workload(task).scaled_load


def _load_of(task: Task) -> float:
    log = _workload(task)
    return log.load_of(log.recorded, log.recorded.span)


def _stretched(setup: Setup, task: Task, factor: float) -> Setup:
    """Arrivals at so many times today's load, whatever the machine becomes."""
    log = _workload(task)
    stretch = log.stretch
    if log.scaled_load:
        fitting = log.fitting(log.read())
        stretch = log.load_of(fitting, fitting.span) / log.scaled_load
    setup = setup.without_settings("task.workload.scaled_load")
    return setup.with_setting("task.workload.stretch", f"{stretch / factor:.12f}")
