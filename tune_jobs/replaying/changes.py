"""Changes to a machine and its policy, as people write them: ``processors=+64``, ``load=+10%``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cluster_env.core.amounts import amount, whole_amount
from cluster_env.core.errors import InputError, shortened
from cluster_env.core.registry import unknown
from cluster_env.sites.changes import KEYS as SITE_KEYS
from cluster_env.sites.changes import changed_site, changes_site
from cluster_env.task import Task
from cluster_env.workloads.log import LogWorkload

POLICY, LOAD, BACKFILLING = "policy", "load", "backfilling"
UNITS = ("processors", "memory", "gpus")
KINDS = ("strict", "skip", "easy", "conservative")
"""Kinds of backfilling."""

OPTIONS = (BACKFILLING, "kill-at-estimate", "max-wait", "run-times")
"""Options of the world that are changed under their own names."""

SETTING = "task."
"""How settings begin that have no shorter name."""

KEYS = (POLICY, *UNITS, LOAD, *OPTIONS)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a log is replayed with.

    Attributes:
        policy: name of a heuristic, or a run directory.
        task_options: values, or texts of them, by names of the world's options.
        overrides: texts of the form ``key=value``.
        site_changes: keys and values of changes to the description of a site.
    """

    policy: str
    task_options: Mapping[str, Any]
    overrides: tuple[str, ...]
    site_changes: tuple[tuple[str, str], ...] = ()

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
    if _workload(task).scaled_load:  # which would depend on the changed machine
        after = _stretched(after, task, 1.0)
    seen = set[str]()
    for text in changes:
        key, value = split_change(text)
        if key in seen:
            raise InputError(f"--change {key} is given twice; give one value")
        seen.add(key)
        after = _after(after, key, value, task)
    return _with_backfilling(after, dict(map(split_change, changes)).get(BACKFILLING))


def _with_backfilling(setup: Setup, kind: str | None) -> Setup:
    """The same, where a policy that names its backfilling has this one."""
    order, colon, named = setup.policy.rpartition(":")
    if kind is None or not colon or "/" in setup.policy or named not in KINDS:
        return setup
    return replace(setup, policy=f"{order}:{kind}")


def _after(setup: Setup, key: str, value: str, task: Task) -> Setup:
    options = task.spec.presentation.options
    if key == POLICY:
        return replace(setup, policy=value)
    site = getattr(task.world, "site", None)
    if changes_site(key):
        if site is None:
            raise InputError(f"{key} is of a site, so describe it with --site FILE")
        return replace(setup, site_changes=(*setup.site_changes, (key, value)))
    if key in UNITS and site is not None:
        raise InputError(
            f"{key} of a site are those of its nodes; change them as in partition.NAME.nodes=+16"
        )
    if key in UNITS:
        now = int(getattr(task.world, key, 0))
        if not now:
            raise InputError(f"{key} are not counted on this machine, so they cannot be changed")
        return setup.with_option(key, f"task.{options[key].key}", whole_amount(key, value, now))
    if key == LOAD:
        return _stretched(setup, task, amount(key, value, _load_of(task)) / _load_of(task))
    if key in OPTIONS:
        return setup.with_option(key, f"task.{options[key].key}", value)
    if key.startswith(SETTING):
        named = {f"task.{option.key}": name for name, option in options.items()}
        said = {k: v for k, v in setup.task_options.items() if k != named.get(key)}
        return replace(setup, task_options=said).with_setting(key, value)
    more = () if site is None else SITE_KEYS
    raise unknown("change", key, (*KEYS, *more, f"{SETTING}..."))


def at_changed_site(task: Task, setup: Setup) -> Task:
    """The task of a setup, with what it changes of the site.

    Raises:
        InputError: if the site has no such part, a value is impossible, or no job fits.
    """
    world: Any = task.world
    log = _workload(task)
    site: Any = getattr(world, "site", None)
    for key, value in setup.site_changes:
        site = changed_site(site, key, value, int(log.read().submit[0]))
    if site is not None and site.calendar and (log.stretch != 1 or log.scaled_load):
        raise InputError(
            "the calendar of a site goes by the log's clock, which another load stretches; leave "
            "out one of the two"
        )
    if not setup.site_changes:
        return task
    world = replace(world, site=site)
    changed_log: Any = log
    workload = replace(changed_log, site=site, capacity=world.capacity, resources=world.resources)
    return replace(task, world=world, workload=workload)


def _workload(task: Task) -> LogWorkload:
    workload = task.workload
    assert isinstance(workload, LogWorkload)
    return workload


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
