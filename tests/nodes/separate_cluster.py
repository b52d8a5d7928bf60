"""A Ray cluster whose nodes reach each other through a network only, with TLS and a token.

The nodes are started by the scripts in `docker`. They share the files of this machine, as real
ones share a folder for runs.
"""

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clusters.services import DOCKER, RayCluster, Service, of_programs, request
from tests.conftest import REPOSITORY
from tests.nodes.namespaces import Host, Network
from tests.waiting import wait_for

START_TIMEOUT_S = 600.0  # about 30 s on a quiet machine
RAY_PORT = 6379
LOGS = ("gcs_server.out", "dashboard.log", "raylet.out", "raylet.err", "dashboard_agent.log")
LINES = 15  # of each log, for the message of a failure

# A node whose agent takes more than 15 s to start gives up. Here others have its cores.
FIRST = ("nice", "-n", "-10")

# A node that is gone closes no connection: the head asks, and counts 3 times 5 s without an answer.
HEALTH = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}


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
        self._folder = folder
        self._began_ms = 0.0
        command = host.inside(*FIRST, "sh", str(DOCKER / script), f"--temp-dir={folder}")
        self.service = Service(command, environment, log)

    def start(self) -> None:
        """Starts it; one that runs is left alone, and of one that has ended nothing is left."""
        if self.service.has_ended():
            self.host.end_processes()
            self._began_ms = 1000 * time.time()
            self.service.start()

    def is_in(self, alive: Mapping[str, float]) -> bool:
        """Whether the head knows it, and not only the one that ran here before.

        Args:
            alive: when the nodes have joined, by address.
        """
        return alive.get(self.host.address, 0.0) >= self._began_ms

    def logs(self) -> str:
        """What it and Ray's processes on it have written at last, without what is in order."""
        session = self._folder / "session_latest" / "logs"
        texts = {"ray start": self.service.log()}
        for file in (session / name for name in LOGS):
            texts[file.name] = file.read_text(errors="replace") if file.exists() else ""
        parts = [f"{self.host.address} {'has ended' if self.service.has_ended() else 'runs'}"]
        for name, text in texts.items():
            lines = [line for line in text.splitlines() if "\tINFO " not in line]
            parts += [f"--- {self.host.address} {name}", *lines[-LINES:]]
        return "\n".join(parts)

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

    Attributes:
        user: one more host, which is no node and has no certificate: users and MLflow are there.
    """

    def __init__(
        self, folder: Path, delay_s: float, num_workers: int = 3, num_spare: int = 1
    ) -> None:
        super().__init__()
        self._folder = folder
        self._num_workers = num_workers
        self.network = Network(1 + num_workers + num_spare + 1, delay_s, folder / "switch.log")
        head, *others, self.user = self.network.hosts
        self._spare = others[num_workers:]
        self.head = self._node(head, "start-head.sh")
        self.workers = [self._node(host, "start-worker.sh") for host in others[:num_workers]]
        self.dashboard = f"http://{head.address}:8265"
        self.tracking_uri = f"http://{self.user.address}:5000"
        self._mlflow = self._make_mlflow()

    def _make_mlflow(self) -> Service:
        environment = {
            **of_programs(),
            "METASCHED_HOST": self.user.address,
            "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{self._folder}/mlflow.db",
            "MLFLOW_ARTIFACTS_DESTINATION": str(self._folder / "artifacts"),
            "MLFLOW_SERVER_ALLOWED_HOSTS": f"{self.user.address}:5000",
        }
        command = self.user.inside("sh", str(DOCKER / "start-mlflow.sh"))
        return Service(command, environment, self._folder / "mlflow.log")

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
        """One more worker node, on a host that has none."""
        host = self._spare.pop(0)
        host.give_power()
        self.workers.append(self._node(host, "start-worker.sh"))
        self.workers[-1].start()
        return self.workers[-1]

    def lose(self, node: Node) -> None:
        """Cuts the power of a node's host, on which another node may be started later."""
        node.host.lose_power()
        node.service.stop()
        self.workers.remove(node)
        self._spare.append(node.host)

    def has_lost(self, node: Node) -> bool:
        """Whether the head knows that a node is gone; no answer says nothing."""
        alive = self._alive()
        return bool(alive) and node.host.address not in alive

    def _alive(self) -> dict[str, float]:
        """When the nodes that live have joined, in ms, by address; empty if the head is silent.

        These are the head's own words; others come later, from the agents of the nodes.
        """
        answer = self.ask(self.head.host, "/nodes?view=summary")
        raylets = [node["raylet"] for node in answer["data"]["summary"]] if answer else []
        return {
            each["nodeManagerAddress"]: float(each["startTimeMs"])
            for each in sorted(raylets, key=lambda each: float(each.get("startTimeMs", 0)))
            if each.get("state") == "ALIVE"
        }

    def ask(self, host: Host, path: str) -> Any:
        """What the dashboard answers to a host; None if it does not."""
        return host.call(lambda: super(SeparateCluster, self)._ask(path))

    def _ask(self, path: str) -> Any:
        return self.ask(self.user, path)

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.user.inside(*command),
            env=self._of_nodes(),
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def start_mlflow(self) -> None:
        """Starts an MLflow server, which is told to jobs only."""
        self._mlflow.start()

        def answers() -> bool:
            return self.user.call(lambda: request(f"{self.tracking_uri}/health"))[0] == 200

        wait_for(answers, "MLflow's start", START_TIMEOUT_S)

    def is_up(self) -> bool:
        """Whether all nodes have joined. Starts what is not running, one after the other.

        A node that does not get up within Ray's 30 s, on a busy machine, gives up.
        """
        alive = self._alive()
        for node in (self.head, *self.workers):
            node.start()
            if not node.is_in(alive):
                return False
        return True

    def make_whole(self) -> None:
        """Waits until as many worker nodes as at first have joined, whatever was lost."""
        while len(self.workers) < self._num_workers:
            self.add_worker()
        try:
            wait_for(self.is_up, "the joining of all nodes", START_TIMEOUT_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        """The last lines of what all nodes have written."""
        return "\n".join(node.logs() for node in (self.head, *self.workers))

    def start(self) -> None:
        """Makes certificates and the network, and waits until all nodes have joined."""
        self._make_certificates([host.address for host in self.network.hosts])
        self.network.__enter__()
        self.make_whole()

    def stop(self) -> None:
        """Removes the network, and with it all that runs."""
        self.network.__exit__()
        for service in (self._mlflow, *(node.service for node in (*self.workers, self.head))):
            service.stop()  # they have ended, and are waited for
        super().stop()
