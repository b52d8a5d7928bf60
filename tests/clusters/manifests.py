"""What the Kubernetes manifests describe."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from tests.clusters.services import DOCKER

MANIFESTS = sorted((DOCKER / "kubernetes").glob("*.yaml"))


@cache
def documents() -> tuple[dict[str, Any], ...]:
    """All Kubernetes objects."""
    return tuple(one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text()))


def clusters() -> list[dict[str, Any]]:
    """The specs of the Ray clusters."""
    return [
        each["spec"].get("rayClusterSpec", each["spec"])
        for each in documents()
        if each["apiVersion"] == "ray.io/v1"
    ]


@dataclass(frozen=True)
class Pod:
    """A description of a pod.

    Attributes:
        name: whose.
        labels: its own, and those that KubeRay will add and policies ask for.
        spec: what it is made of.
        added: containers that KubeRay adds.
    """

    name: str
    labels: dict[str, str]
    spec: dict[str, Any]
    added: tuple[dict[str, Any], ...] = ()

    @property
    def containers(self) -> list[dict[str, Any]]:
        """All containers, those that run first too."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"], *self.added]


def pods() -> Iterator[Pod]:
    """Every pod of the manifests, the submitter's too."""
    for each in documents():
        name, spec = each["metadata"]["name"], each["spec"]
        if each["kind"] == "Deployment":
            yield _pod(name, spec["template"])
        if each["kind"] == "RayJob":
            yield _pod(f"{name}-submitter", spec["submitterPodTemplate"])
            spec = spec["rayClusterSpec"]
        if each["kind"] in ("RayCluster", "RayJob"):
            head = spec["headGroupSpec"]["template"]
            autoscaler = {"name": "autoscaler", **spec["autoscalerOptions"]}
            yield _pod(f"{name}-head", head, {"ray.io/node-type": "head"}, autoscaler)
            for group in spec["workerGroupSpecs"]:
                more = {"ray.io/node-type": "worker"}
                yield _pod(f"{name}-{group['groupName']}", group["template"], more)


def _pod(
    name: str,
    template: dict[str, Any],
    more_labels: dict[str, str] | None = None,
    *added: dict[str, Any],
) -> Pod:
    labels = {**template["metadata"]["labels"], **(more_labels or {})}
    return Pod(name, labels, template["spec"], added)
