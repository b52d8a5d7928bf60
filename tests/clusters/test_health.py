"""The health checks: what they say, and that asking costs next to nothing."""

import http.server
import resource
import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.clusters.local_cluster import LocalCluster
from tests.clusters.services import DOCKER, free_ports, of_programs, psutil
from tests.waiting import PATIENCE_S, wait_for

CPU_LIMIT_S = 1.5  # it takes 0.1 s; importing Ray takes 3.5 s
CHECKS = {
    "check-ray.sh": ("METASCHED_AGENT_PORT", "/api/healthz"),
    "check-mlflow.sh": ("METASCHED_MLFLOW_PORT", "/health"),
}


def check(script: str, port: int) -> subprocess.CompletedProcess[str]:
    """Runs a health check against a port of this machine."""
    environment = {"PATH": of_programs()["PATH"], CHECKS[script][0]: str(port)}
    command = ["sh", str(DOCKER / script)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers 200 to the paths that are well."""

    well: frozenset[str] = frozenset()

    def do_GET(self) -> None:
        self.send_response(200 if self.path in self.well else 503)
        self.end_headers()
        self.wfile.write(b"gcs: it is ill" if self.path not in self.well else b"success")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.HTTPServer]:
    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.mark.parametrize("script", CHECKS)
def test_it_says_what_the_service_says(script, server, monkeypatch):
    port = server.server_address[1]
    monkeypatch.setattr(Answering, "well", frozenset())
    ill = check(script, port)
    assert ill.returncode == 1
    assert ill.stderr == "status 503: gcs: it is ill\n"
    monkeypatch.setattr(Answering, "well", frozenset([CHECKS[script][1]]))
    assert check(script, port).returncode == 0


@pytest.mark.parametrize("script", CHECKS)
def test_it_fails_in_a_line_where_nothing_runs(script):
    (port,) = free_ports(1)
    gone = check(script, port)
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"127.0.0.1:{port} does not answer")
    assert gone.stderr.count("\n") == 1


@pytest.mark.parametrize("script", CHECKS)
def test_asking_costs_next_to_nothing(script, server):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(script, server.server_address[1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 0 < spent < CPU_LIMIT_S


@pytest.mark.integration
@pytest.mark.service
@pytest.mark.slow
def test_a_node_is_ill_when_its_raylet_is_gone(tmp_path):
    cluster = LocalCluster(tmp_path, num_workers=0)
    try:
        cluster.start_ray()
        port = cluster.agent_ports[0]
        wait_for(lambda: check("check-ray.sh", port).returncode == 0, "the head's health")
        for process in psutil.process_iter(["name", "cmdline"]):
            mine = str(port) in " ".join(process.info["cmdline"] or ())
            if process.info["name"] == "raylet" and mine:
                process.kill()
        wait_for(lambda: check("check-ray.sh", port).returncode == 1, "the head's illness")
    finally:
        cluster.stop()
