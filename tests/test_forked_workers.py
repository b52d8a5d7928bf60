"""Workers of the Ray that tests share are forks; those of another job start as ever."""

import os
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, run_python

ANOTHER_JOB = """
import os, sys
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(ray.get(ray.remote(num_cpus=0)(lambda: os.getppid()).remote(), timeout=100))
"""


def command_line(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


@pytest.mark.integration
def test_a_worker_is_a_fork_if_it_is_of_the_first_job(local_ray: None) -> None:
    import ray

    parent = ray.get(ray.remote(num_cpus=0)(lambda: os.getppid()).remote(), timeout=PATIENCE_S)
    assert "tests.forked_workers" in command_line(parent)
    address = ray.get_runtime_context().gcs_address
    done = run_python("-c", ANOTHER_JOB, address)
    assert done.returncode == 0, done.stderr
    other = int(done.stdout.splitlines()[-1])
    assert command_line(other)[0].endswith("raylet")
