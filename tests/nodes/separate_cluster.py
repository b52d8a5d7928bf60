"""A Ray cluster whose nodes reach each other through a network only, with TLS and a token.

The nodes are started by the scripts in `docker`. They share the files of this machine, as real
ones share a folder for runs.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clusters.services import DOCKER, RayCluster, Service
from tests.nodes.namespaces import Host, Network
from tests.waiting import wait_for

START_TIMEOUT_S = 300.0  # about 30 s on a quiet machine
RAY_PORT = 6379

# A node that is gone closes no connection: the head asks, and counts 3 times 5 s without an answer.
HEALTH = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}
ASK = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"})
sys.stdout.write(urllib.request.urlopen(request, timeout=5).read().decode())
"""


class Node:
    """A Ray node on a host of its own.

    Args:
        host: where it runs.
        script: of `docker` that starts it.
        environment: of its processes.
        folder: for Ray's own files.
        log: file for what it says.
    """

    def __init__(
        self, host: Host, script: str, environment: dict[str, str], folder: Path, log: Path
    ) -> None:
        self.host = host
        command = host.inside("sh", str(DOCKER / script), f"--temp-dir={folder}")
        self.service = Service(command, environment, log)

    def runners(self) -> list[int]:
        """Processes of actors on it; those of Ray itself that look alike are left out."""
        return [pid for pid in self.host.processes() if _is_runner(Path("/proc", str(pid)))]


def _is_runner(process: Path) -> bool:
    try:
        title = (process / "cmdline").read_text(errors="replace")
    except OSError:
        return False  # it has ended meanwhile
    return re.match(r"ray::(?!IDLE)(?!\w*Agent)", title) is not None


class SeparateCluster(RayCluster):
    """A head, workers with one CPU each, and hosts for more. Use it in a ``with`` statement.

    Args:
        folder: for logs.
        delay_s: of the network, one way.
        num_workers: worker nodes that it starts with.
        num_spare: hosts on which others can be started.
    """

    def __init__(
        self, folder: Path, delay_s: float, num_workers: int = 3, num_spare: int = 1
    ) -> None:
        super().__init__()
        self._folder = folder
        num_hosts = 1 + num_workers + num_spare
        self.network = Network(num_hosts, delay_s, folder / "switch.log")
        self._spare = self.network.hosts[1 + num_workers :]
        self.head, *self.workers = [
            self._node(host, "start-worker.sh" if number else "start-head.sh")
            for number, host in enumerate(self.network.hosts[: 1 + num_workers])
        ]

    def _make_certificates(self, addresses: list[str]) -> None:
        command = [str(DOCKER / "make-certificates.sh"), str(self._temp / "tls"), *addresses]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def environment(self, host: Host) -> dict[str, str]:
        """What every process on a host is told, drivers too."""
        return {
            **self._of_nodes(),
            **HEALTH,
            "RAY_USE_TLS": "1",
            "RAY_TLS_CA_CERT": str(self._temp / "tls" / "ca.crt"),
            "RAY_TLS_SERVER_CERT": str(self._temp / "tls" / f"{host.address}.crt"),
            "RAY_TLS_SERVER_KEY": str(self._temp / "tls" / f"{host.address}.key"),
            "METASCHED_HOST": host.address,
            "METASCHED_HEAD": self.address,
            "METASCHED_WORKER_CPUS": "1",  # so that each runner is on another node
            "METASCHED_OBJECT_STORE": str(100 * 2**20),
        }

    def _node(self, host: Host, script: str) -> Node:
        log = self._folder / f"{host.address}.log"
        return Node(host, script, self.environment(host), self._temp / host.name, log)

    @property
    def address(self) -> str:
        """HOST:PORT for ``--address``."""
        return f"{self.network.hosts[0].address}:{RAY_PORT}"

    def add_worker(self) -> Node:
        """One more worker node, on a host that had none."""
        self.workers.append(self._node(self._spare.pop(0), "start-worker.sh"))
        self.workers[-1].service.start()
        return self.workers[-1]

    def lose(self, node: Node) -> None:
        """Cuts the power of a node's host."""
        node.host.lose_power()
        node.service.stop()
        self.workers.remove(node)

    def alive(self) -> set[str]:
        """Addresses of the nodes that the head takes for alive."""
        answer = self.ask(self.head.host, "/nodes?view=summary")
        nodes = answer["data"]["summary"] if answer else []
        return {node["ip"] for node in nodes if node["raylet"].get("state") == "ALIVE"}

    def ask(self, host: Host, path: str) -> Any:
        """What the dashboard answers to a host; None if it does not."""
        url = f"http://{self.network.hosts[0].address}:8265{path}"
        command = host.inside(sys.executable, "-IS", "-c", ASK, url, self._token)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return None if done.returncode else json.loads(done.stdout)

    def is_up(self) -> bool:
        """Whether all nodes have joined. Starts what is not running, one after the other."""
        for node in (self.head, *self.workers):
            node.service.start()
            if node.host.address not in self.alive():
                return False
        return True

    def start(self) -> None:
        """Makes certificates and the network, and waits until all nodes have joined."""
        self._make_certificates([host.address for host in self.network.hosts])
        self.network.__enter__()
        wait_for(self.is_up, "the start of all nodes", START_TIMEOUT_S)

    def stop(self) -> None:
        """Removes the network, and with it all that runs."""
        self.network.__exit__()
        for node in (*self.workers, self.head):
            node.service.stop()  # they have ended, and are waited for
        super().stop()
