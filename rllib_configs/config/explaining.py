"""What is wrong with a config, as one sentence that names the key."""

from collections.abc import Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from reprlib import Repr
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from cluster_env.core.errors import MAX_SHOWN, shortened
from cluster_env.core.removed import was_removed
from cluster_env.worlds import WORLDS
from rllib_configs.config.options import TrainingSection, owners
from rllib_configs.config.sections import DerivedSection, section_of

_TYPES = ("str", "int", "float", "bool")  # which of several types a value was tried as
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_OUR_NAMES = {
    "learning_rate": "lr",
    **dict.fromkeys(("discount", "discount_factor"), "gamma"),
    **dict.fromkeys(("lambda", "lambda_"), "gae_lambda"),
    **dict.fromkeys(("num_epochs", "n_epochs", "num_sgd_iter"), "epochs"),
    **dict.fromkeys(("clip_param", "clip_range", "clip_coef"), "clip"),
    **dict.fromkeys(("entropy_coeff", "ent_coef"), "entropy"),
    **dict.fromkeys(("grad_clip", "max_grad_norm"), "gradient_clip"),
    "inner_lr": "inner_rate",
    "inner_adaptation_steps": "inner_steps",
    **dict.fromkeys(("num_env_runners", "num_workers"), "num_runners"),
    "num_iterations": "iterations",
}
"""Names that RLlib, Stable-Baselines3 and CleanRL give to our settings."""
_QUOTED = Repr()  # writes no more of a value than can be shown
_QUOTED.maxstring = _QUOTED.maxlong = _QUOTED.maxother = MAX_SHOWN


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
    match problem["type"]:
        case "nested":
            return explain(context["error"], context["model"], path)
        case "choice":
            return f"{'.'.join([*path, context['key']])}: {context['error']}"
        case "value_error":
            return f"{'.'.join(path)}: {context['error']}" if path else str(context["error"])
        case kind if kind in _UNKNOWN_KEY:
            return _explain_unknown(path, model, inner)
    shown = problem.get("input")
    if sentence := was_removed(path[-1] if path else "config", str(shown)):
        return f"{'.'.join(path)}: {sentence}"
    quoted = "" if isinstance(shown, dict) else f", but {shortened(_QUOTED.repr(shown))} was given"
    message = problem["msg"]
    return f"{'.'.join(path) or 'config'}: {message[0].lower()}{message[1:]}{quoted}"


def _explain_unknown(path: list[str], model: type[BaseModel], inner: list[str]) -> str:
    """Says whose key it is, or which one is the nearest."""
    key, name = ".".join(path), path[-1]
    if sentence := was_removed("option", name):
        return f"{key}: {sentence}"
    if len(inner) == 1 and (elsewhere := _elsewhere(model, name)):
        return f"{key} is not used by {elsewhere}"
    holder: Any = model
    for part in inner[:-1]:  # the keys of a table are the user's
        if get_origin(holder) is dict:
            holder = get_args(holder)[1]
            continue
        holder = holder.model_fields[part].annotation
        if get_origin(holder) is not dict:
            holder = next((each for each in get_args(holder) if each is not NoneType), holder)
        if isinstance(holder, type) and is_dataclass(holder):
            holder = section_of(holder)
    known = sorted(holder.model_fields)
    section = f" in '{'.'.join(path[:-1])}'" if path[:-1] else ""
    ours = _OUR_NAMES.get(name, name)
    near = [".".join([*path[:-1], close]) for close in get_close_matches(ours, known, n=1)]
    if not near and (not section or ours != name):
        near = settings_named(name, model)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"unknown key '{key}': {hint}known{section} are {', '.join(known)}"


def settings_named(name: str, config: type[BaseModel]) -> list[str]:
    """Where a config has settings of a name, as ``--set`` takes them: ``training.lr`` for ``lr``.

    Args:
        name: the last part of the key, or what another library calls it.
        config: the schema of a whole config.
    """
    name = _OUR_NAMES.get(name, name)
    found = {
        f"{section}.{name}"
        for section, field in config.model_fields.items()
        if name in getattr(field.annotation, "model_fields", {})
    }
    if owners(name):
        found.add(f"training.{name}")
    for world in map(WORLDS.get, WORLDS.names()):
        if name in section_of(world.world).model_fields:
            found.add(f"task.world.{name}")
        if any(name in world.workloads.get(each).names for each in world.workloads.names()):
            found.add(f"task.workload.{name}")
    return sorted(found)


def _elsewhere(model: type[BaseModel], name: str) -> str:
    """Who does not have a setting, and who has, or why nobody has; empty for an unknown one."""
    if issubclass(model, TrainingSection):
        belongs = " and ".join(owners(name))
        kind = "network" if belongs.startswith("the network") else "algorithm"
        chosen = model.model_fields[kind].default
        return f"the {kind} {chosen}; it belongs to {belongs}" if belongs else ""
    if not issubclass(model, DerivedSection):
        return ""
    kind_of, own, _ = model.origin
    for workloads in (WORLDS.get(world).workloads for world in WORLDS.names()):
        if own not in workloads.names() or workloads.get(own).workload is not kind_of:
            continue
        if why := workloads.get(own).refused.get(name):
            return f"the workload {own} of this world: {why}"
        others = [each for each in workloads.names() if name in workloads.get(each).names]
        belongs = f"the workload{'s' if len(others) > 1 else ''} {' and '.join(others)}"
        return f"the workload {own}; it belongs to {belongs}" if others else ""
    return ""
