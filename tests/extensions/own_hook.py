"""A hook of one's own: writes each iteration for TensorBoard, or as JSON lines without TensorBoard.

Known to every command with METASCHED_IMPORTS=own_hook in the environment:
metasched train --run runs/mine; tensorboard --logdir runs
"""

import json
from functools import cache
from importlib.util import find_spec

from rllib_configs.config.registries import HOOKS


@HOOKS.register("tensorboard")
def on_iteration(row, run):
    if find_spec("tensorboard") is None:
        with (run / "iterations.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return
    for name, value in row.items():
        _writer(run).add_scalar(name, value, int(row["iteration"]))
    _writer(run).flush()


@cache
def _writer(run):
    from torch.utils.tensorboard import SummaryWriter  # takes seconds: only where a run trains

    return SummaryWriter(run / "tensorboard")
