"""What is wrong with a config, as one sentence that names the key."""

from collections.abc import Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cluster_env.core.errors import MAX_SHOWN, shortened
from cluster_env.core.spec import WorldSpec
from cluster_env.worlds import WORLDS
from rllib_configs.options import TrainingSection, owners
from rllib_configs.sections import DerivedSection

_TYPES = ("str", "int", "float", "bool")  # which of several types a value was tried as
_QUOTED = Repr()  # writes no more of a value than can be shown
_QUOTED.maxstring = _QUOTED.maxlong = _QUOTED.maxother = MAX_SHOWN
_SECRET = "secret"  # the type of errors whose input is not to be shown


def explain(error: ValidationError, model: type[BaseModel], place: Sequence[str] = ()) -> str:
    """The first problem of a validation, as one sentence.

    Args:
        error: of the validation.
        model: what was validated.
        place: keys at which the model stands in the whole.
    """
    problem = error.errors()[0]
    inner = [str(part) for part in problem["loc"] if part not in _TYPES]
    path = [*place, *map(shortened, inner)]
    context = problem.get("ctx", {})
    if problem["type"] == "nested":
        return explain(context["error"], context["model"], path)
    if problem["type"] == "refused":
        key = ".".join([*path, *context["path"]])
        return f"{key}: {context['text']}" if key else context["text"]
    if problem["type"] == "extra_forbidden":
        return _explain_unknown(path, model, inner)
    key = ".".join(path) or "config"
    given = problem.get("input")
    hidden = isinstance(given, dict) or problem["type"] == _SECRET
    shown = "" if hidden else f", but {shortened(_QUOTED.repr(given))} was given"
    return f"{key}: {problem['msg'][0].lower()}{problem['msg'][1:]}{shown}"


def _explain_unknown(path: list[str], model: type[BaseModel], inner: list[str]) -> str:
    """Says whose key it is, or which one is the nearest."""
    key, name = ".".join(path), path[-1]
    holder = _section_at(model, inner[:-1])
    if len(inner) == 1:
        elsewhere = _elsewhere(model, name)
        if elsewhere:
            return f"{key} is not used by {elsewhere}"
    known = sorted(holder.model_fields)
    close = get_close_matches(name, known, n=1)
    section = f" in '{'.'.join(path[:-1])}'" if path[:-1] else ""
    hint = f"did you mean '{'.'.join([*path[:-1], *close])}'? " if close else ""
    return f"unknown key '{key}': {hint}known{section} are {', '.join(known)}"


def _elsewhere(model: type[BaseModel], name: str) -> str:
    """Who does not have a setting, and who has, or why nobody has; empty for an unknown one."""
    if issubclass(model, TrainingSection):
        chosen = {key: model.model_fields[key].default for key in ("algorithm", "network")}
        belongs = " and ".join(owners(name))
        kind = "network" if belongs.startswith("the network") else "algorithm"
        return f"the {kind} {chosen[kind]}; it belongs to {belongs}" if belongs else ""
    if issubclass(model, DerivedSection):
        _, own, _ = model.origin
        for world in map(WORLDS.get, WORLDS.names()):
            if not _is_workload(world, model):
                continue
            why = world.workloads.get(own).refused.get(name)
            if why:
                return f"the workload {own} of this world: {why}"
            others = _workloads_with(world, name)
            belongs = f"the workload{'s' if len(others) > 1 else ''} {' and '.join(others)}"
            return f"the workload {own}; it belongs to {belongs}" if others else ""
    return ""


def _is_workload(spec: WorldSpec, model: type[DerivedSection]) -> bool:
    made, name, _ = model.origin
    return name in spec.workloads.names() and spec.workloads.get(name).workload is made


def _workloads_with(spec: WorldSpec, field: str) -> list[str]:
    return [name for name in spec.workloads.names() if field in spec.workloads.get(name).names]


def _section_at(model: type[BaseModel], path: Sequence[str]) -> type[BaseModel]:
    """The section at some keys of another; the keys of a table are the user's."""
    found: Any = model
    for key in path:
        if get_origin(found) is dict:
            found = get_args(found)[1]
            continue
        found = found.model_fields[key].annotation
        if get_origin(found) is not dict:
            found = next((part for part in get_args(found) if part is not type(None)), found)
    known: type[BaseModel] = found
    return known
