"""What of a checkout travels with a job of Ray."""

import subprocess
import zipfile
from pathlib import Path

from ray._private.runtime_env.packaging import create_package

from tests.conftest import REPOSITORY


def test_a_job_gets_code_and_a_users_own_files_but_no_results(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    tracked = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in [*tracked, ".gitignore", ".rayignore"]:
        source, target = REPOSITORY / name, checkout / name
        if source.is_file():  # not one that is deleted, but not yet committed so
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    own = ["jobs.csv", "logs/site.csv", "tests.csv", "my-tests/queue.png", "docker.yaml"]
    results = ["my-runs/first/checkpoints/iteration_000025/weights.pt", "runs/a/metrics.csv"]
    for name in own + results:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("1\n")

    package = tmp_path / "package.zip"
    create_package(str(checkout), package, include_gitignore=True)
    travels = set(zipfile.ZipFile(package).namelist())

    code = {name for name in tracked if name.startswith(("cluster_env/", "meta/", "tune_jobs/"))}
    assert {name for name in code if name.endswith(".py")} <= travels
    assert set(own) <= travels
    assert not travels & set(results)
    assert not any(name.startswith(("tests/", "tune_jobs/figures/recorded/")) for name in travels)
    assert package.stat().st_size < 4_500_000
