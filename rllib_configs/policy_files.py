"""Trained policies and their files: the weights and the config. Needs no Ray."""

import json
import pickletools
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.json_text import read_json
from cluster_env.core.registry import imported
from cluster_env.core.removed import was_removed
from cluster_env.core.world import State, World
from cluster_env.objectives import Objective
from cluster_env.worlds import policy_in, shipped_policies
from rllib_configs.config.loading import parse_config, read_yaml, write_config
from rllib_configs.config.registries import CONVERSIONS
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.registry import Weights, make_sampler, network_of
from rllib_configs.networks.sampling import Sampler

Decode = Literal["sample", "argmax"]

CONFIG_FILE = "config.yaml"
WEIGHTS_FILE = "weights.pt"
TEXT_FILE = "weights.json"
"""Few weights can be kept as text: lists of numbers by name."""
POLICY_FOLDER = "policy"

_KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_GLOBALS = {
    *("collections OrderedDict", "torch._utils _rebuild_tensor_v2"),
    *(f"torch {kind}Storage" for kind in _KINDS),
}
_CODES = {
    *("PROTO", "STOP", "MARK", "GLOBAL", "REDUCE", "BINPERSID", "BINUNICODE", "NONE"),
    *("NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
}
"""What a table of tensors by name is made from, as PyTorch writes it."""


@dataclass(frozen=True)
class LearnedPolicy:
    """A trained network as a `Policy`.

    Attributes:
        name: what tables call it.
        network: computes logits from states.
        decode: ``sample`` draws from the network's distribution, as DeepRM is evaluated;
            ``argmax`` takes the likeliest action, which may wait for ever.
        void_bias: what is added to the logit of void, with ``argmax``: with one far below 0 the
            policy never waits where it may start a job, and only chooses which; with one above 0 it
            waits more often than it was trained to.
        make: makes the network for another world, if that can be done.
    """

    name: str
    network: Sampler
    decode: Decode = "sample"
    void_bias: float = 0.0
    make: Callable[[World, Objective | None], Sampler] | None = None

    def acting_in(self, world: World, objective: Objective | None = None) -> "LearnedPolicy":
        """The policy with features that are computed by another world's rules.

        Args:
            world: where it acts.
            objective: what counts there, for a network that is told; by default what counted
                where it was trained.

        Raises:
            InputError: if it cannot act there, or cannot be told of the objective.
        """
        return self if self.make is None else replace(self, network=self.make(world, objective))

    def scores(self, states: State) -> NDArray[np.float32]:
        """See `cluster_env.core.policy.ScoringPolicy`: logits, of which ``argmax`` is the best."""
        logits = self.network.logits(states)
        if self.void_bias:
            logits[:, -1] += np.float32(self.void_bias)
        return logits

    def view(self, world: World) -> World:
        """See `cluster_env.core.policy.ViewingPolicy`; most networks see worlds as they are."""
        network_view = getattr(self.network, "view", None)
        return world if network_view is None else network_view(world)

    def act(self, states: State, uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.Policy`."""
        if self.decode == "sample":
            return self.network.sample(states, uniforms)[0]
        likeliest = getattr(self.network, "likeliest", None)
        if likeliest is not None:
            done: NDArray[np.int32] = likeliest(states, self.void_bias)
            return done
        return self.scores(states).argmax(axis=1).astype(np.int32)


@dataclass(frozen=True)
class PlayedLearnedPolicy(LearnedPolicy):
    """A trained network whose whole episodes simulators play by themselves.

    Nothing is drawn then, so ``decode`` says no more than whether the void bias counts.
    """

    def play(self, simulator: Any, keys: NDArray[np.uint64]) -> None:
        """See `cluster_env.core.policy.PlayedPolicy`."""
        network: Any = self.network
        network.play(simulator, self.void_bias if self.decode == "argmax" else 0.0)

    def choose(
        self, simulator: Any, rows: NDArray[np.int32], uniforms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """See `ChoosingPolicy`; a network that cannot choose in a simulator acts on its states."""
        network_choose = getattr(self.network, "choose", None)
        if network_choose is None:
            return self.act(simulator.states[rows], uniforms)
        bias = self.void_bias if self.decode == "argmax" else 0.0
        actions: NDArray[np.int32] = network_choose(simulator, rows, bias)
        return actions


def write_policy(
    weights: Weights, config: ExperimentConfig, folder: Path, *, as_text: bool = False
) -> None:
    """Writes weights, by name as the RLModule has them, and their config; see `load_policy`.

    Args:
        weights: by name.
        config: what they were trained with.
        folder: created if need be.
        as_text: whether to write the weights as JSON, to the last digit, and not as tensors: for
            policies of a few hundred numbers that people are to read.
    """
    folder.mkdir(parents=True, exist_ok=True)

    file, write_weights = (TEXT_FILE, _write_text) if as_text else (WEIGHTS_FILE, _write_tensors)
    for name, write in (
        (file, partial(write_weights, weights)),
        (CONFIG_FILE, partial(write_config, config)),
    ):
        aside = folder / f".{name}"
        write(aside)
        aside.replace(folder / name)


def _write_tensors(weights: Weights, path: Path) -> None:
    import torch  # takes two seconds, which a command that refuses its options does without

    torch.save({name: torch.from_numpy(value.copy()) for name, value in weights.items()}, path)


def _write_text(weights: Weights, path: Path) -> None:
    # The shortest text that gives the same float32 again.
    shortest = {
        name: np.array([float(str(number)) for number in value.ravel()]).reshape(value.shape)
        for name, value in weights.items()
    }
    data = {name: value.tolist() for name, value in shortest.items()}
    path.write_text(json.dumps(data, indent=1) + "\n")


def load_policy(
    path: str | Path,
    decode: Decode = "sample",
    name: str | None = None,
    world: World | None = None,
) -> tuple[LearnedPolicy, ExperimentConfig]:
    """Reads a policy back.

    Args:
        path: a run's folder, a folder that `save_policy` wrote, or the name of a policy that comes
            with metasched.
        decode: see `LearnedPolicy`.
        name: what tables call it; the name in its config if not given.
        world: where it acts, see `rllib_configs.networks.make_sampler`.

    Raises:
        InputError: if there is no policy, or it is broken. No code in the file is ever run.
    """
    folder = policy_folder(path)
    weights, config = read_weights(folder)
    try:
        return policy_of(config, weights, name or config.name, decode, world), config
    except InputError as error:
        called = policy_in(Path(path))
        raise InputError(f"the policy in {called} cannot be used: {error}") from None
    except Exception as error:  # a network of somebody's own may raise anything
        raise InputError(
            f"{weights_file(folder)} is not of the network in its config: {_what_broke(error)}"
        ) from None


def read_policy_config(path: str | Path) -> ExperimentConfig:
    """The config of a policy, without its weights; see `load_policy`.

    Raises:
        InputError: if there is no policy, or its config cannot be used.
    """
    return parse_config(read_yaml(policy_folder(path) / CONFIG_FILE))


def read_weights(path: str | Path) -> tuple[Weights, ExperimentConfig]:
    """Reads the weights of a policy as they were written, and its config; see `load_policy`.

    Raises:
        InputError: if there is no policy, or a file is broken, or holds numbers that no policy can
            decide with. No code in the files is ever run.
    """
    config = read_policy_config(path)
    file = weights_file(policy_folder(path))
    try:
        if file.name == TEXT_FILE:
            with np.errstate(over="ignore"):  # what is infinite then is refused
                data = read_json(file)
                weights = {str(name): np.array(value, np.float32) for name, value in data.items()}
        else:
            import torch  # see `write_policy`

            _require_plain_archive(file)
            with warnings.catch_warnings(action="ignore"):  # of what is refused in the next line
                tensors = torch.load(file, weights_only=True, map_location="cpu")
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
            if size > file.stat().st_size:  # one number repeated, or one tensor under many names
                raise ValueError(f"it asks for {size:,} bytes and holds fewer")
            weights = {name: tensor.numpy() for name, tensor in tensors.items()}
    except Exception as error:  # whatever a damaged file makes PyTorch say
        raise InputError(f"{file} is broken: {_what_broke(error)}") from None
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise InputError(
                f"{file} holds weights that are NaN or infinite ({name}), as after a training that "
                f"diverged, so its policy cannot decide; take another policy"
            )
    return weights, config


def _require_plain_archive(file: Path) -> None:
    """Makes sure that a file holds a table of tensors and no more than its own size.

    PyTorch compresses nothing. What it allows with ``weights_only`` can still ask for any amount of
    memory: ``bytearray(10**10)`` is ten characters long.

    Raises:
        UnpicklingError: if it is no archive, or its table is made from anything but tensors.
        ValueError: if it is larger.
    """
    if not zipfile.is_zipfile(file):
        raise UnpicklingError
    with zipfile.ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > file.stat().st_size:
            raise ValueError(f"it unpacks to {size:,} bytes, but weights are not compressed")
        tables = [name for name in archive.namelist() if name.endswith("data.pkl")]
        for name in tables:
            for code, argument, _ in pickletools.genops(archive.read(name)):
                if code.name not in _CODES or (code.name == "GLOBAL" and argument not in _GLOBALS):
                    raise UnpicklingError


def policy_folder(path: str | Path) -> Path:
    """Folder of a policy.

    Args:
        path: that folder, or a run's, or the name of a policy that comes with metasched.

    Raises:
        InputError: if there is no policy.
    """
    folder = shipped_policies().get(str(path), Path(path))
    if (folder / POLICY_FOLDER).is_dir():
        folder = folder / POLICY_FOLDER
    if not weights_file(folder).is_file():
        gone = was_removed("policy", Path(path).name)
        raise InputError(gone or f"there is no trained policy in {path}: it has no {WEIGHTS_FILE}")
    return folder


def weights_file(folder: Path) -> Path:
    """The file that holds the weights in a policy's folder, or would: tensors, else text."""
    text = folder / TEXT_FILE
    return text if text.is_file() else folder / WEIGHTS_FILE


def _what_broke(error: Exception) -> str:
    """What is wrong with a file of weights, in one line."""
    if isinstance(error, UnpicklingError):  # PyTorch's message explains how to run it all the same
        return "it holds something else than plain tensors"
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def check_start(config: ExperimentConfig, path: str | Path) -> None:
    """Makes sure, without Ray, that a run can begin with the weights of a trained policy.

    Raises:
        InputError: if there is no policy, or it is broken or of another network.
    """
    shapes = network_of(config).shapes(config, config.task.world)
    nothing = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    starting_weights(config, path, nothing)


def starting_weights(
    config: ExperimentConfig, path: str | Path, own: Weights
) -> dict[str, NDArray[np.float32]]:
    """The weights that a run begins with which starts from a trained policy.

    Args:
        config: of the run.
        path: see `load_policy`. Only a critic may be missing there, what a scorer is told, its
            weights of classes, and what maml learns beside the network; they then start anew. Some
            networks can begin as another one, see `rllib_configs.config.registries.CONVERSIONS`.
        own: weights of the run by name.

    Raises:
        InputError: if there is no policy, or it is broken or of another network.
    """
    given, source = read_weights(path)
    convert = _conversion(source, config)
    if convert is not None:
        made: dict[str, NDArray[np.float32]] = convert(source, given, config, own)
        return made
    for name, value in own.items():
        beside = any(part in name for part in (".critic", ".told_", ".classes"))
        beside = beside or name.startswith(("rates.", "entropy_coefficient"))
        if beside and name not in given:
            continue
        if name not in given or given[name].shape != value.shape:
            raise InputError(
                f"the policy in {path} has another network than this experiment, so "
                "training cannot start from it; train both with the same training.network, "
                "training.hidden and cluster"
            )
    return {name: given.get(name, value) for name, value in own.items()}


def _conversion(source: ExperimentConfig, config: ExperimentConfig) -> Any:
    """What makes weights of the one network from those of the other; None where nothing does."""
    change = f"{source.training.network} to {config.training.network}"
    return imported(CONVERSIONS.get(change)) if change in CONVERSIONS.names() else None


def policy_of(
    config: ExperimentConfig,
    weights: Weights,
    name: str,
    decode: Decode,
    world: World | None = None,
    objective: Objective | None = None,
) -> LearnedPolicy:
    """A policy of an experiment's network; `rllib_configs.networks.make_sampler` says of what.

    Raises:
        InputError: if the weights are those of another network.
    """
    make = partial(make_sampler, config, weights)
    network = make(world, objective)
    kind = PlayedLearnedPolicy if hasattr(network, "play") else LearnedPolicy
    return kind(name, network, decode, make=make)
