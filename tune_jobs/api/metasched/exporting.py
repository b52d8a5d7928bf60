"""Trained networks as files for other programs."""

import logging
import warnings
from importlib.util import find_spec
from pathlib import Path

from cluster_env.core.errors import InputError
from metasched.arguments import new_file
from rllib_configs.policy_files import load_policy
from tune_jobs.terminal.files import replacing


def export_onnx(path: str | Path, out: str | Path, *, force: bool = False) -> Path:
    """Writes the network of a policy as an ONNX file, which other programs run without metasched.

    >>> export_onnx("runs/mine", "mine.onnx")

    Its output ``logits``, float32 ``(n, num_actions)``, has void last, and -1e9 for what is not
    allowed. ``argmax`` is the policy's choice; the file neither draws nor adds a void bias.

    ``deeprm_mlp`` takes ``image``, float32 ``(n, cells)``, row by row. Others take any number of
    items: ``items``, float32 ``(n, num_items, item_size)``, ``context``, float32
    ``(n, context_size)``, and ``allowed``, bool ``(n, num_items + 1)``. Metadata of the file name
    the features of items and context in their order:

    * of ``set_scorer``, those of ``World.features``;
    * of ``bilinear_scorer``, `rllib_configs.worlds.deeprm.bilinear_weights.JOB_FEATURES` and
      ``STATE_FEATURES``;
    * of ``hpc_scorer``, `cluster_env.worlds.hpc.scorer.JOB_FEATURES` and ``STATE_FEATURES``.
      ``allowed`` has what ``training.mode`` lets start.

    ``policy.network.tensor_form().observe(states)`` computes the inputs of states.

    Args:
        path: a run's folder, a policy's, or the name of one that comes with metasched.
        out: the file.
        force: whether a file that is there is replaced.

    Returns:
        The file.

    Raises:
        InputError: if there is no policy, its network cannot be exported, the file cannot be
            written, or a package is missing.
    """
    if missing := [name for name in ("onnx", "onnxscript") if find_spec(name) is None]:
        raise InputError(f"an export needs the package {missing[0]}: pip install 'metasched[onnx]'")
    out = new_file(out, force)
    policy, config = load_policy(path)
    if not hasattr(policy.network, "tensor_form"):
        raise InputError(
            f"the network {config.training.network} of {path} cannot be exported as ONNX"
        )
    import torch  # takes seconds, which a call that is refused does without

    form, file = policy.network.tensor_form(), Path(out)
    shapes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in form.any_size.values()]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # that torchvision is not there
    try:
        with replacing(file) as aside, warnings.catch_warnings(action="ignore"):
            program = torch.onnx.export(
                form.module,
                tuple(form.inputs.values()),
                input_names=list(form.inputs),
                output_names=["logits"],
                dynamic_shapes=shapes,
                verbose=False,
            )
            assert program is not None  # which the exporter before this one returned
            named = {name: ", ".join(features) for name, features in form.features.items()}
            program.model.metadata_props.update(named)
            program.save(aside, external_data=False)
    except OSError as error:
        raise InputError(f"cannot write to {file}: {error.strerror or error}") from None
    return file
