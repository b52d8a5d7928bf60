"""The image, the compose file and the manifests: valid, and with the commands that tests run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters.manifests import DOCKER, clusters, documents, pods
from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE_S

SCRIPTS = sorted(DOCKER.glob("*.sh"))
SECRETS = {"RAY_AUTH_TOKEN": "token-of-a-test", "POSTGRES_PASSWORD": "password-of-a-test"}


def tool(name: str) -> str:
    """Path of a checker; the test is skipped where it is not installed."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; the extra dev has it")
    return found


def interpolated(text: str, variables: dict[str, str]) -> str:
    """Compose's ``${NAME:-default}`` and ``${NAME:?message}``, filled in.

    Raises:
        KeyError: with the message, if a variable is missing that must be there.
    """

    def value(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        if name in variables:
            return variables[name]
        if kind == ":?":
            raise KeyError(text)
        return text

    return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", value, text)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load(interpolated((DOCKER / "compose.yaml").read_text(), SECRETS))


def flags(script: str) -> dict[str, str]:
    """Flags that a script starts Ray or MLflow with, defaults filled in."""
    text = (DOCKER / script).read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^exec (.*)$", text, re.MULTILINE)
    found = re.findall(r"--([\w-]+)(?:=(\"[^\"]*\"|\S+))?", command)
    return {name: re.sub(r'^"?\$\{\w+:-(.*)\}"?$', r"\1", value) for name, value in found}


class TestScripts:
    @pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
    def test_shellcheck_has_nothing_to_say(self, script):
        command = [tool("shellcheck"), "-x", "-P", str(DOCKER), str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout

    @pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
    def test_what_is_run_can_be_run(self, script):
        assert bool(script.stat().st_mode & 0o111) == (script.name != "common.sh")

    @pytest.mark.parametrize(
        ("script", "environment", "complaint"),
        [
            ("start-head.sh", {}, "set RAY_AUTH_MODE to token or to disabled"),
            ("start-head.sh", {"RAY_AUTH_MODE": "token"}, "needs RAY_AUTH_TOKEN"),
            ("start-worker.sh", {"RAY_AUTH_MODE": "off"}, "set RAY_AUTH_MODE"),
            ("start-worker.sh", {"RAY_AUTH_MODE": "disabled"}, "METASCHED_HEAD must say"),
            (
                "start-worker.sh",
                {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/nowhere"},
                "a file that is not empty",
            ),
            ("start-mlflow.sh", {}, "MLFLOW_BACKEND_STORE_URI must name"),
            ("start-mlflow.sh", {"MLFLOW_BACKEND_STORE_URI": "sqlite://"}, "where artifacts go"),
        ],
    )
    def test_what_is_missing_is_said_before_anything_starts(self, script, environment, complaint):
        done = subprocess.run(
            ["sh", str(DOCKER / script)],
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 2
        assert complaint in done.stderr
        assert done.stderr.count("\n") == 1

    def test_nodes_stay_on_this_machine_unless_told(self):
        ask = (
            f'. {DOCKER}/common.sh; echo "$METASCHED_HOST ${{RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER:-}}"'
        )
        for host, expected in (({}, "127.0.0.1 0"), ({"METASCHED_HOST": "10.0.0.7"}, "10.0.0.7")):
            environment = {"PATH": "/usr/bin:/bin", **host}
            shown = subprocess.check_output(["sh", "-c", ask], env=environment, text=True)
            assert shown.strip() == expected


class TestImage:
    @pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.slurm"])
    def test_hadolint_has_nothing_to_say(self, name):
        # DL3066 wants a number for the user, which is an argument of the build.
        command = [tool("hadolint"), "--ignore", "DL3066", str(DOCKER / name)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout

    def test_it_runs_as_an_ordinary_user_with_pinned_versions(self):
        text = (DOCKER / "Dockerfile").read_text()
        before, _, after = text.partition("USER metasched")
        assert "pip install" not in before
        assert "pip install -c constraints.txt" in after
        assert "USER root" not in after
        assert "python -m tune_jobs.warm" in after

    def test_what_it_copies_travels_to_the_builder(self):
        files = "".join((DOCKER / name).read_text() for name in ("Dockerfile", "Dockerfile.slurm"))
        copied = re.findall(r"^COPY --chown=\S+ (.+) \S+$", files, re.M)
        allowed = set(re.findall(r"^!(\S+)$", (REPOSITORY / ".dockerignore").read_text(), re.M))
        wanted = {name for line in copied for name in line.split()}
        assert wanted == allowed
        assert all((REPOSITORY / name).exists() for name in wanted)


class TestCompose:
    def test_the_specification_is_met(self, compose):
        validator = pytest.importorskip("compose_spec", reason="the extra dev has it")
        validator.PyCompose.from_yaml(yaml.safe_dump(compose)).validate()

    def test_each_service_runs_the_script_that_tests_run(self, compose):
        commands = {name: service.get("command") for name, service in compose["services"].items()}
        assert commands == {
            "head": ["start-head.sh"],
            "worker": ["start-worker.sh"],
            "mlflow": ["start-mlflow.sh"],
            "database": None,
            "slurm": ["start-slurm.sh"],
        }
        assert {path.name for path in SCRIPTS} >= {c[0] for c in commands.values() if c}

    def test_only_this_machine_reaches_its_ports(self, compose):
        ports = [port for each in compose["services"].values() for port in each.get("ports", [])]
        assert ports
        assert all(port.startswith("127.0.0.1:") for port in ports)

    @pytest.mark.parametrize("missing", sorted(SECRETS))
    def test_it_refuses_to_start_without_a_secret(self, missing):
        left = {name: value for name, value in SECRETS.items() if name != missing}
        with pytest.raises(KeyError, match=f"set {missing}, for instance"):
            interpolated((DOCKER / "compose.yaml").read_text(), left)

    def test_secrets_reach_no_service_but_by_files(self, compose):
        shown = yaml.safe_dump(compose["services"])
        assert not any(value in shown for value in SECRETS.values())
        ray = compose["services"]["worker"]["environment"]
        assert ray["RAY_AUTH_MODE"] == "token"
        assert ray["RAY_AUTH_TOKEN_PATH"] == "/run/secrets/ray_token"

    def test_names_that_are_used_are_declared(self, compose):
        for name, service in compose["services"].items():
            named = [volume for volume in service.get("volumes", []) if ":" in volume]
            assert {volume.partition(":")[0] for volume in named} <= compose["volumes"].keys(), name
            assert set(service.get("secrets", [])) <= compose["secrets"].keys()
            assert set(service.get("networks", [])) <= compose["networks"].keys()
            assert set(service.get("depends_on", {})) <= compose["services"].keys()
            assert "healthcheck" in service

    def test_slurm_is_started_only_if_it_is_asked_for_and_reaches_nobody(self, compose):
        optional = {name for name, each in compose["services"].items() if "profiles" in each}
        assert optional == {"slurm"}
        slurm = compose["services"]["slurm"]
        assert slurm["profiles"] == ["slurm"]
        assert slurm["network_mode"] == "none"
        assert not slurm.keys() & {"networks", "ports", "secrets"}
        assert slurm["extra_hosts"] == [f"{slurm['hostname']}:127.0.0.1"]
        assert slurm["build"]["args"]["BASE"] == compose["services"]["head"]["image"]
        dockerfile = (REPOSITORY / slurm["build"]["dockerfile"]).read_text()
        assert re.findall(r"^USER (\w+)$", dockerfile, re.M)[-1] == "metasched"

    def test_mlflow_knows_the_name_that_it_is_called_by(self, compose):
        services = compose["services"]
        called = services["head"]["environment"]["MLFLOW_TRACKING_URI"].removeprefix("http://")
        allowed = services["mlflow"]["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"].split(",")
        assert called in allowed


class TestManifests:
    def test_kubernetes_accepts_what_is_its_own(self):
        validator = pytest.importorskip("kubernetes_validate", reason="the extra dev has it")
        for each in documents():
            if not each["apiVersion"].startswith("ray.io"):
                validator.validate(each, "1.34", strict=True)
        for each in pods():
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": each.spec}
            validator.validate(pod, "1.34", strict=True)

    def test_nodes_start_as_the_scripts_start_them(self):
        head, worker = flags("start-head.sh"), flags("start-worker.sh")
        for spec in clusters():
            params = spec["headGroupSpec"]["rayStartParams"]
            assert params == {
                "num-cpus": head["num-cpus"],
                "num-gpus": head["num-gpus"],
                "object-store-memory": head["object-store-memory"],
                "disable-usage-stats": "true",
            }
            assert "disable-usage-stats" in head
            for group in spec["workerGroupSpecs"]:
                asked = group["rayStartParams"]["object-store-memory"]
                assert asked == worker["object-store-memory"]

    def test_ray_asks_for_a_token_and_can_grow(self):
        for spec in clusters():
            assert spec["authOptions"] == {"mode": "token"}
            assert spec["enableInTreeAutoscaling"] is True
            for group in spec["workerGroupSpecs"]:
                assert group["minReplicas"] <= group["replicas"] < group["maxReplicas"]

    def test_ray_is_the_version_that_is_pinned(self):
        pinned = re.search(r"^ray==(\S+)$", (REPOSITORY / "constraints.txt").read_text(), re.M)
        assert {spec["rayVersion"] for spec in clusters()} == {pinned[1]}

    def test_a_job_that_is_submitted_again_goes_on(self):
        (job,) = [each for each in documents() if each["kind"] == "RayJob"]
        words = job["spec"]["entrypoint"].split()
        assert words[:3] == ["python", "-m", "tune_jobs.train"]
        assert "--continue" in words
        assert job["spec"]["backoffLimit"] > 0

    def test_images_are_those_of_the_compose_file(self, compose):
        always = [each for each in compose["services"].values() if "profiles" not in each]
        ours = {service["image"] for service in always}
        assert {one["image"] for pod in pods() for one in pod.spec["containers"]} == ours

    def test_claims_exist(self):
        claims = {
            each["metadata"]["name"] for each in documents() if each["kind"].endswith("VolumeClaim")
        }
        for pod in pods():
            for volume in pod.spec["volumes"]:
                claim = volume.get("persistentVolumeClaim", {"claimName": None})["claimName"]
                assert claim is None or claim in claims
