"""What every pod and every container of ours must have: no more rights than it needs."""

import re
from typing import Any

import pytest
import yaml

from tests.clusters.manifests import DOCKER, MANIFESTS, Pod, documents, pods

PODS = {pod.name: pod for pod in pods()}
CONTAINERS = {
    f"{pod.name}/{container['name']}": container for pod in pods() for container in pod.containers
}
LONG_RUNNING = {
    f"{pod.name}/{container['name']}": container
    for pod in pods()
    for container in pod.spec["containers"]
    if container["name"] != "ray-job-submitter"  # one that ends
}


def test_nothing_is_left_out():
    assert set(PODS) == {
        *("metasched-database", "mlflow", "metasched-head", "metasched-runners"),
        *("metasched-train-submitter", "metasched-train-head", "metasched-train-runners"),
    }


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
class TestPods:
    def test_it_runs_as_an_ordinary_user(self, pod):
        security = pod.spec["securityContext"]
        assert security["runAsNonRoot"] is True
        assert min(security["runAsUser"], security["runAsGroup"]) > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_volumes_are_not_handed_over_file_by_file_at_each_start(self, pod):
        assert pod.spec["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"

    def test_it_gets_no_token_of_kubernetes(self, pod):
        assert pod.spec["automountServiceAccountToken"] is False
        with_token = {volume["name"] for volume in pod.spec["volumes"] if "projected" in volume}
        for container in pod.containers:
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            assert container["name"] == "autoscaler" or not mounted & with_token

    def test_what_is_mounted_is_there(self, pod):
        volumes = {volume["name"] for volume in pod.spec["volumes"]}
        for container in pod.containers:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes

    def test_folders_in_the_nodes_memory_and_disk_have_a_limit(self, pod):
        for volume in pod.spec["volumes"]:
            assert "sizeLimit" in volume.get("emptyDir", {"sizeLimit": None})
            assert "hostPath" not in volume

    def test_it_shares_nothing_with_its_node(self, pod):
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.spec.keys()


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
class TestContainers:
    def test_it_cannot_gain_rights_or_change_its_root(self, container):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_it_can_write_temporary_files(self, container):
        places = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert "/tmp" in places or container.get("command", [""])[0] == "cp"

    def test_it_takes_no_more_than_it_is_given(self, container):
        for which in ("requests", "limits"):
            assert container["resources"][which].keys() >= {"cpu", "memory"}

    def test_its_image_has_a_version(self, container):
        if container["name"] == "autoscaler":  # KubeRay takes the head's
            assert "image" not in container
            return
        assert re.search(r"(:\d[\w.-]*|@sha256:[0-9a-f]{64})$", container["image"])
        assert container["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("container", LONG_RUNNING.values(), ids=LONG_RUNNING)
class TestProbes:
    def test_it_is_asked_whether_it_is_ready_and_alive(self, container):
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["timeoutSeconds"] <= container[probe]["periodSeconds"]

    def test_ray_and_mlflow_are_asked_by_the_node_itself(self, container):
        """A probe that starts a process costs CPU, and KubeRay's own need wget."""
        asked = container["livenessProbe"].get("httpGet")
        expected = {
            "ray-head": {"path": "/api/healthz", "port": 52365},
            "ray-worker": {"path": "/api/healthz", "port": 52365},
            "mlflow": {"path": "/health", "port": "http"},
            "postgres": None,
        }
        assert asked == expected[container["name"]]


head, worker = PODS["metasched-train-head"], PODS["metasched-train-runners"]
submitter, mlflow = PODS["metasched-train-submitter"], PODS["mlflow"]
database = PODS["metasched-database"]


class TestNetwork:
    def policies(self) -> list[dict[str, Any]]:
        return [each["spec"] for each in documents() if each["kind"] == "NetworkPolicy"]

    def of(self, pod: Pod, direction: str) -> list[dict[str, Any]]:
        """The policies that apply to a pod."""
        return [
            spec
            for spec in self.policies()
            if direction in spec["policyTypes"]
            and spec["podSelector"]["matchLabels"].items() <= pod.labels.items()
        ]

    @pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
    def test_every_pod_has_one_in_both_directions(self, pod):
        assert self.of(pod, "Ingress")
        assert self.of(pod, "Egress")

    def may_call(self, caller: Pod, called: Pod, port: int) -> bool:
        """Whether both sides' policies let a connection through."""
        return self._allows(caller, called, port, "Egress") and self._allows(
            called, caller, port, "Ingress"
        )

    def _allows(self, pod: Pod, other: Pod, port: int, direction: str) -> bool:
        key, peers = direction.lower(), {"Ingress": "from", "Egress": "to"}[direction]
        rules = [rule for spec in self.of(pod, direction) for rule in spec.get(key, [])]
        for rule in rules:
            ports = [each["port"] for each in rule.get("ports", [])]
            if ports and port not in ports:
                continue
            if peers not in rule:
                return True
            for peer in rule[peers]:
                wanted = peer.get("podSelector", {}).get("matchLabels", {})
                if "namespaceSelector" not in peer and wanted.items() <= other.labels.items():
                    return True
        return False

    def test_what_must_talk_can_talk(self):
        for caller, called, port in (
            (head, worker, 12345),
            (worker, head, 6379),
            (head, mlflow, 5000),
            (worker, mlflow, 5000),
            (submitter, head, 8265),
            (mlflow, database, 5432),
        ):
            assert self.may_call(caller, called, port), (caller.name, called.name, port)

    def test_nobody_else_can(self):
        stranger = Pod("stranger", {"app": "else"}, {"containers": []})
        for called in PODS.values():
            for port in (5000, 5432, 6379, 8265, 52365):
                assert not self._allows(called, stranger, port, "Ingress"), (called.name, port)
        for caller, called, port in (
            (submitter, head, 6379),
            (submitter, mlflow, 5000),
            (worker, database, 5432),
            (head, database, 5432),
            (mlflow, head, 8265),
            (database, mlflow, 5000),
        ):
            assert not self.may_call(caller, called, port), (caller.name, called.name, port)

    def test_only_the_head_reaches_kubernetes_itself(self):
        stranger = Pod("kubernetes", {}, {"containers": []})
        reaching = {
            name for name, pod in PODS.items() if self._allows(pod, stranger, 443, "Egress")
        }
        assert reaching == {"metasched-head", "metasched-train-head"}


def test_each_manifest_says_what_to_apply_it_with():
    for manifest in MANIFESTS:
        text = manifest.read_text()
        assert text.startswith("# ")
        for name in re.findall(r"docker/kubernetes/(\S+\.yaml)", text):
            assert (manifest.parent / name).exists()


@pytest.mark.parametrize("name", ["head", "worker", "mlflow", "database", "slurm"])
def test_compose_gives_no_service_more_than_it_needs(name):
    text = (DOCKER / "compose.yaml").read_text()
    service = yaml.safe_load(text)["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"privileged", "pid", "ipc"}
    assert service.get("network_mode", "none") == "none"
    assert not service["image"].endswith("latest}")
    writable = [*service.get("volumes", []), *service.get("tmpfs", [])]
    assert "/tmp" in [path.partition(":")[0] for path in writable]
