"""A Ray cluster and an MLflow server as plain processes on loopback, to be killed and restarted.

They are started by the scripts in `docker`, as the containers are; what differs stands in
`_node_arguments`: several nodes of one machine need folders and ports of their own.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.clusters.services import DOCKER, RayCluster, Service, free_ports, request
from tests.conftest import REPOSITORY
from tests.waiting import wait_for

START_TIMEOUT_S = 300.0  # about 25 s on a quiet machine
RECONNECT_S = 5  # for which a worker waits for a head that is gone; Ray's default is 60
OBJECT_STORE_BYTES = 200 * 2**20


class LocalCluster(RayCluster):
    """A head, workers and an MLflow server. Use it in a ``with`` statement.

    Args:
        folder: for the logs, MLflow's database and its artifacts.
        num_workers: worker nodes.
        worker_cpus: logical CPUs of each.

    Attributes:
        agent_ports: where the agents of the nodes listen, the head's first.
    """

    def __init__(self, folder: Path, num_workers: int = 2, worker_cpus: int = 2) -> None:
        super().__init__()
        self.folder = folder
        self._ray_port, self._dashboard_port, self._mlflow_port = free_ports(3)
        self.dashboard = f"http://127.0.0.1:{self._dashboard_port}"
        self.tracking_uri = f"http://127.0.0.1:{self._mlflow_port}"
        self.environment = self._make_environment(worker_cpus)
        self._nodes_started = 0
        self.agent_ports: list[int] = []
        self.head = self._head()
        self.workers = [self._worker() for _ in range(num_workers)]
        self.mlflow = Service(
            ["sh", str(DOCKER / "start-mlflow.sh")], self.environment, folder / "mlflow.log"
        )

    def _make_environment(self, worker_cpus: int) -> dict[str, str]:
        return {
            **self._of_nodes(),
            "RAY_gcs_rpc_server_reconnect_timeout_s": str(RECONNECT_S),
            "METASCHED_RAY_PORT": str(self._ray_port),
            "METASCHED_DASHBOARD_PORT": str(self._dashboard_port),
            "METASCHED_HEAD": self.address,
            "METASCHED_WORKER_CPUS": str(worker_cpus),
            "METASCHED_OBJECT_STORE": str(OBJECT_STORE_BYTES),
            "METASCHED_MLFLOW_PORT": str(self._mlflow_port),
            "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{self.folder}/mlflow.db",
            "MLFLOW_ARTIFACTS_DESTINATION": str(self.folder / "artifacts"),
        }

    def _node_arguments(self) -> list[str]:
        """What nodes need that share a machine: folders and ports of their own."""
        self._nodes_started += 1
        names = ("dashboard-agent-listen-port", "dashboard-agent-grpc-port")
        names += ("runtime-env-agent-port", "metrics-export-port")
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.agent_ports.append(ports["dashboard-agent-listen-port"])
        arguments = [f"--{name}={port}" for name, port in ports.items()]
        arguments += ["--min-worker-port=0", "--max-worker-port=0", "--include-log-monitor=false"]
        return [f"--temp-dir={self._temp / str(self._nodes_started)}", *arguments]

    def _head(self) -> Service:
        arguments = [*self._node_arguments(), f"--ray-client-server-port={free_ports(1)[0]}"]
        command = ["sh", str(DOCKER / "start-head.sh"), *arguments]
        return Service(command, self.environment, self.folder / "head.log")

    def _worker(self) -> Service:
        command = ["sh", str(DOCKER / "start-worker.sh"), *self._node_arguments()]
        number = self._nodes_started
        return Service(command, self.environment, self.folder / f"worker-{number}.log")

    @property
    def address(self) -> str:
        """HOST:PORT for ``--address``."""
        return f"127.0.0.1:{self._ray_port}"

    def start(self) -> None:
        """Starts everything and waits until all nodes have joined and MLflow answers."""
        self.start_ray()
        self.mlflow.start()
        wait_for(self.mlflow_answers, f"MLflow's start: {self.mlflow.log()}")

    def start_ray(self) -> None:
        """Starts head and workers, and waits until all have joined."""
        wait_for(self._ray_is_up, "the start of Ray", START_TIMEOUT_S)

    def _ray_is_up(self) -> bool:
        """Starts what is not running, as ``restart: unless-stopped`` would; says if all is there.

        A node that does not get up within Ray's 30 s, on a busy machine, gives up.
        """
        self.head.start()
        if not self.dashboard_answers():
            return False
        for position, worker in enumerate(self.workers):
            worker.start()
            if self.num_nodes() < 2 + position:
                return False  # one after the other: each gets up sooner
        return True

    def replace_head(self) -> None:
        """A new head at the same address, as a restarted container would be."""
        self.head = self._head()

    def replace_worker(self, index: int) -> None:
        """A new worker node in the place of one that is gone."""
        self.workers[index] = self._worker()
        self.workers[index].start()

    def mlflow_answers(self) -> bool:
        """Whether the MLflow server is up."""
        return request(f"{self.tracking_uri}/health")[0] == 200

    def dashboard_answers(self) -> bool:
        """Whether jobs can be submitted."""
        return self._ask("/api/version") is not None

    def num_nodes(self) -> int:
        """Nodes of the cluster that are alive."""
        answer = self._ask("/nodes?view=summary")
        if answer is None:
            return 0
        nodes = answer["data"]["summary"]
        return sum(node["raylet"].get("state") == "ALIVE" for node in nodes)

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def stop(self) -> None:
        """Ends everything and removes its temporary files."""
        for service in (*self.workers, self.head, self.mlflow):
            service.stop()
        super().stop()


@contextlib.contextmanager
def timed(times: dict[str, float], name: str) -> Iterator[None]:
    """Notes how long a part took, in seconds."""
    began = time.monotonic()
    yield
    times[name] = round(time.monotonic() - began, 1)
