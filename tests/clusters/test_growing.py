"""A cluster with an autoscaler grows with what jobs ask for, and shrinks when they have ended.

The autoscaler is Ray's own, the second version, which KubeRay uses. Instead of pods it starts nodes
as processes of this machine, with a provider that Ray brings for tests.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clusters.local_cluster import LocalCluster
from tests.waiting import wait_for
from tune_jobs.runs.history import History

pytestmark = [pytest.mark.integration, pytest.mark.service, pytest.mark.timeout(600)]

HEAD, HEAD_ID = "ray.head.default", "f" * 51 + "00000"  # by which the provider knows it
IDLE_S = 6.0
JOB_TIMEOUT_S = 240.0


def sets(*changes: str) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


SETTINGS = sets("tracking.enabled=false", "training.iterations=2", "evaluation.jobsets=2")


class GrowingCluster(LocalCluster):
    """A head with one CPU and no worker; up to two workers with two CPUs each can come."""

    def _make_environment(self, worker_cpus: int) -> dict[str, str]:
        return {
            **super()._make_environment(worker_cpus),
            "AUTOSCALER_UPDATE_INTERVAL_S": "1",
            "METASCHED_HEAD_CPUS": "1",
            "RAY_enable_autoscaler_v2": "1",
            "RAY_FAKE_CLUSTER": "1",
            "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID,
            # As KubeRay does in its pods:
            "RAY_CLOUD_INSTANCE_ID": HEAD_ID,
            "RAY_NODE_TYPE_NAME": HEAD,
        }

    def _node_arguments(self) -> list[str]:
        config = self.folder / "autoscaler.json"
        config.write_text(json.dumps(self._autoscaling()))
        return [*super()._node_arguments(), f"--autoscaling-config={config}"]

    def _autoscaling(self) -> dict[str, object]:
        module = "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider"
        provider = {"type": "external", "module": module, "head_node_id": HEAD_ID}
        worker = {"CPU": 2, "object_store_memory": 100 * 2**20}
        kinds = ("initialization", "setup", "head_setup", "worker_setup")
        empty = [f"{kind}_commands" for kind in (*kinds, "head_start_ray", "worker_start_ray")]
        empty += ["cluster_synced_files", "rsync_exclude", "rsync_filter"]
        return {
            "cluster_name": "growing",
            "max_workers": 2,
            "idle_timeout_minutes": IDLE_S / 60,
            "provider": {**provider, "gcs_address": self.address, "launch_multiple": True},
            "head_node_type": HEAD,
            "available_node_types": {
                HEAD: {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0},
                "worker": {"resources": worker, "node_config": {}, "max_workers": 2},
            },
            "auth": {},
            "file_mounts": {},
            "file_mounts_sync_continuously": False,
            "docker": {},
            "upscaling_speed": 1.0,
            **{name: [] for name in empty},
        }


@pytest.fixture(scope="module")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with GrowingCluster(tmp_path_factory.mktemp("cluster"), num_workers=0) as cluster:
        yield cluster


@pytest.fixture
def cluster(started_cluster: LocalCluster) -> LocalCluster:
    """Each test begins with the head alone."""
    wait_for(lambda: started_cluster.num_nodes() == 1, "the end of earlier nodes")
    return started_cluster


def metasched(cluster: LocalCluster, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tune_jobs.cli", *arguments, "--address", cluster.address],
        env=cluster.environment,
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        timeout=JOB_TIMEOUT_S,
        check=False,
    )


def test_a_run_brings_the_nodes_that_it_needs_and_they_go_when_it_has_ended(
    cluster: LocalCluster,
) -> None:
    done = metasched(
        cluster, "train", "deeprm-smoke", "--runners", "3", "--run", "grown", *SETTINGS
    )
    assert done.returncode == 0, done.stderr
    line = "waits for 3 CPUs; 1 of 1 are free; asked the autoscaler for more; gives up in 1:00 h"
    assert done.stderr.count("waits for") == 1, done.stderr
    assert line in done.stderr.splitlines()
    assert "Trained for 2 iterations." in done.stdout
    assert History(cluster.folder / "grown" / "metrics.csv").rows()[-1]["workers/healthy"] == 3
    wait_for(lambda: cluster.num_nodes() == 1, "the end of the nodes")


def test_a_sweep_brings_the_nodes_that_its_trials_need(cluster: LocalCluster) -> None:
    sweep = {
        "name": "two",
        "preset": "deeprm-smoke",
        "settings": {"training.iterations": 2, "evaluation.jobsets": 2, "tracking.enabled": False},
        "space": {"training.lr": {"grid": [0.001, 0.01]}},
        "search": "grid",
    }
    (cluster.folder / "two.yaml").write_text(json.dumps(sweep))
    done = metasched(cluster, "tune", "two.yaml", "--set", "resources.num_runners=1")
    assert done.returncode == 0, done.stderr
    assert len(list(cluster.folder.glob("runs/*/trials/*/policy"))) == 2


def test_of_two_runs_that_need_all_nodes_one_waits_for_the_other(cluster: LocalCluster) -> None:
    train = ["train", "deeprm-smoke", "--runners", "4", *SETTINGS, "--run"]
    wait_for(lambda: cluster.num_nodes() == 1, "the end of the nodes of other tests")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(metasched, cluster, *train, name) for name in ("one", "other")]
        results = [each.result() for each in both]
    assert [each.returncode for each in results] == [0, 0], results
    # The second may find what the first has asked for, and be the first to use it.
    assert any("waits for 4 CPUs; " in each.stderr for each in results)


def test_what_no_autoscaler_can_bring_ends_by_the_limit(cluster: LocalCluster) -> None:
    settings = sets("tracking.enabled=false", "resources.wait_s=5", "training.jobsets=9")
    done = metasched(cluster, "train", "deeprm-smoke", "--runners", "9", *settings)
    assert done.returncode == 1
    assert "9 CPUs did not come free within 5 s (1 of 1 are free; asked the" in done.stderr
