"""A sweep of three trials and its folder, without Ray."""

import pytest

from rllib_configs.config.loading import parse_section
from tune_jobs.sweeps.definition import Sweep
from tune_jobs.sweeps.folder import create_sweep


@pytest.fixture
def sweep() -> Sweep:
    data = {
        "preset": "deeprm-smoke",
        "space": {"training.lr": {"grid": [0.1, 0.01, 0.001]}},
        "search": "grid",
    }
    return parse_section(Sweep, data)


@pytest.fixture
def folder(sweep, tmp_path):
    made = create_sweep(sweep, tmp_path)
    yield made
    made.unlock()
