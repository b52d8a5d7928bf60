"""Training on machines that are really apart: own addresses, a network that delays, TLS, a token.

`make test-nodes`. Each node is in a network namespace of its own. Without root, iproute2, openssl
or taps, each test is skipped and says why.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.nodes.namespaces import Host, missing
from tests.nodes.separate_cluster import Node, SeparateCluster
from tests.waiting import started, wait_for
from tune_jobs.runs.history import History

pytestmark = [
    pytest.mark.integration,
    pytest.mark.nodes,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
]

DELAYS_MS = (0, 1, 10)
JITTER_S = 0.005  # of a switch in Python, at the best of several tries
RUNNERS = 3
TRAIN_TIMEOUT_S = 300.0
TRAIN = (sys.executable, "-m", "tune_jobs.train", "deeprm-smoke", "--set", "tracking.enabled=false")
SETTINGS = (
    *("evaluation.every=0", "checkpoint.every=0", "resources.runner_timeout_s=8"),
    "training.jobsets=12",  # six units: each runner has some to play
)
WITHOUT_END = 1_000_000  # iterations; a signal ends it, and it saves what it has
STRANGER = """
import socket, ssl, sys
host, port, authority, *own = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
context.set_alpn_protocols(["h2"])
if own:
    context.load_cert_chain(*own)
plain = socket.create_connection((host, int(port)), timeout=20)
print(len(context.wrap_socket(plain, server_hostname=host).recv(100)))
"""

Row = Mapping[str, float]


@pytest.fixture(scope="module", params=DELAYS_MS, ids=lambda delay: f"delay{delay}ms")
def started_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SeparateCluster]:
    if reason := missing():
        pytest.skip(reason)
    with SeparateCluster(tmp_path_factory.mktemp("nodes"), request.param / 1000) as begun:
        yield begun


def command(run: Path, iterations: int, *more: str) -> list[str]:
    """What trains a run."""
    settings = (*SETTINGS, f"training.iterations={iterations}")
    chosen = [word for setting in settings for word in ("--set", setting)]
    return [*TRAIN, *chosen, "--run", str(run), *more]


class Training:
    """A run that is in training.

    Args:
        run: its folder.
        driver: process that trains it.
        log: file for what that says.
    """

    def __init__(self, run: Path, driver: "subprocess.Popen[Any]", log: Path) -> None:
        self._run = run
        self._driver = driver
        self._log = log

    def wait_for_row(self, what: str, wanted: Callable[[Row], bool]) -> None:
        """Waits for an iteration that ends from now on and of which something is true."""
        first = len(rows(self._run))

        def found() -> bool:
            return any(wanted(row) for row in rows(self._run)[first:])

        try:
            wait_for(found, what, TRAIN_TIMEOUT_S, self._driver)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{rows(self._run)[-1:]}\n{self.log()}") from None

    def restarts(self) -> float:
        """Runners that were started anew so far."""
        return rows(self._run)[-1]["workers/restarts"]

    def wait_for_whole(self, what: str, restarts: float = 0) -> None:
        """Waits for an iteration with all runners, after so many restarts."""
        self.wait_for_row(
            what,
            lambda row: row["workers/healthy"] == RUNNERS and row["workers/restarts"] >= restarts,
        )

    def finish(self) -> int:
        """Waits for the driver's end; returns its status."""
        return self._driver.wait(TRAIN_TIMEOUT_S)

    def stop(self) -> int:
        """Asks it to save and end after the iteration that it is in; returns its status."""
        self._driver.terminate()
        return self.finish()

    def log(self) -> str:
        """What the driver has said."""
        return self._log.read_text()


@contextmanager
def training(cluster: SeparateCluster, run: Path, iterations: int) -> Iterator[Training]:
    """Trains on the cluster, each runner on another node; the driver is on the head."""
    head = cluster.head.host
    words = command(run, iterations, "--runners", str(RUNNERS), "--address", cluster.address)
    file = run.with_suffix(".log")
    options = {"env": cluster.environment(head), "cwd": REPOSITORY, "stderr": subprocess.STDOUT}
    with file.open("wb") as log, started(head.inside(*words), stdout=log, **options) as driver:
        yield Training(run, driver, file)


def has_runners(nodes: Iterable[Node]) -> None:
    """Waits until there is one on each node; a busy machine may have to replace a slow one."""
    for node in nodes:
        wait_for(lambda node=node: len(node.runners()) == 1, f"a runner on {node.host.address}")


def rows(run: Path) -> list[dict[str, float]]:
    """What a run has written about its iterations."""
    table = run / "metrics.csv"
    return History(table).rows() if table.exists() else []


def learned(run: Path) -> list[dict[str, float]]:
    """What depends on the weights and the jobsets only, of each iteration."""
    return [
        {name: value for name, value in row.items() if name.startswith(("train/", "total/"))}
        for row in rows(run)
    ]


def weights(run: Path, iteration: int) -> bytes:
    """Those of a run's checkpoint."""
    return (run / "checkpoints" / f"iteration_{iteration:06d}" / "policy/weights.pt").read_bytes()


def test_the_network_takes_its_time(cluster: SeparateCluster) -> None:
    first, *others = (node.host for node in (cluster.head, *cluster.workers))
    for other in others:
        times = first.round_trips(other)
        least = 2 * cluster.network.delay_s
        assert least <= min(times) < least + JITTER_S, times


def test_training_outlives_a_node_and_a_runner(cluster: SeparateCluster, tmp_path: Path) -> None:
    """A node loses its power, another joins, a runner stops; the weights are as if alone."""
    lost, stopping = cluster.workers[:2]
    run, alone = tmp_path / "apart", tmp_path / "alone"
    with training(cluster, run, WITHOUT_END) as going:
        going.wait_for_whole("training by all runners")
        has_runners(cluster.workers)

        restarts = going.restarts()
        cluster.lose(lost)
        wait_for(lambda: cluster.has_lost(lost), "the head's noticing")
        going.wait_for_row("training without the node", lambda row: True)
        joined = cluster.add_worker()
        cluster.make_whole()
        going.wait_for_whole("training by all runners again", restarts + 1)
        has_runners([joined])

        restarts = going.restarts()
        (stopped,) = stopping.runners()
        os.kill(stopped, signal.SIGSTOP)
        wait_for(lambda: not Path("/proc", str(stopped)).exists(), "the stopped runner's end")
        going.wait_for_whole("training by all runners once more", restarts + 1)
        has_runners([stopping])
        assert going.stop() == 128 + signal.SIGTERM, going.log()

    done = len(rows(run))
    words = command(alone, done, "--runners", "0")
    subprocess.run(words, cwd=REPOSITORY, check=True, timeout=TRAIN_TIMEOUT_S)
    assert learned(run) == learned(alone)
    assert weights(run, done) == weights(alone, done)


def test_only_the_dashboard_is_in_the_clear(cluster: SeparateCluster, tmp_path: Path) -> None:
    before = cluster.network.plain()
    with training(cluster, tmp_path / "short", 3) as short:
        assert short.finish() == 0, short.log()
    assert cluster.network.plain() == before
    assert cluster.ask(cluster.workers[-1].host, "/api/version")
    asked = {receiver for _, receiver in cluster.network.plain() - before}
    assert f"{cluster.head.host.address}:8265" in asked


def test_who_has_no_certificate_is_refused(cluster: SeparateCluster) -> None:
    def greeting(host: Host, *names: str) -> str:
        """Bytes that the head says at first to who comes with a certificate, or without."""
        environment = cluster.environment(host)
        files = [environment[f"RAY_TLS_{name}"] for name in ("CA_CERT", *names)]
        program = [sys.executable, "-IS", "-c", STRANGER, *cluster.address.split(":"), *files]
        done = subprocess.run(host.inside(*program), capture_output=True, text=True, timeout=60)
        return done.stdout.strip()

    host = cluster.workers[-1].host
    assert int(greeting(host, "SERVER_CERT", "SERVER_KEY")) > 0
    assert greeting(host) in ("", "0")
