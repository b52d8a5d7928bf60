"""What an installation brings: a wheel with all packages, an editable one, extensions of a user's.

Both are installed by pip into environments of their own, without the network.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from mypy.fscache import FileSystemCache
from mypy.modulefinder import FindModuleCache, SearchPaths, get_search_dirs

from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PACKAGES = ("cluster_env", "rllib_configs", "meta", "tune_jobs")
PIP = ("-m", "pip", "-qq", "--disable-pip-version-check")
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index")
HELD = (".html", ".py", ".yaml", ".json", ".typed")
"""Endings of what has to be in a wheel, once."""
COMPILED = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")


def copied(folder: Path) -> Path:
    """A copy of what is installed from, because building leaves files behind."""
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for name in PACKAGES:
        shutil.copytree(REPOSITORY / name, copy / name, ignore=COMPILED)
    return copy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return copied(tmp_path)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A new virtual environment that sees the libraries of this one, but not its metasched."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # A folder that a .pth file names has no .pth files of its own: no editable installation.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return tmp_path / "venv" / "bin" / "python"


def run(*command: str | Path, cwd: Path, paths: tuple[Path, ...] = ()) -> str:
    """Runs a command with these folders as PYTHONPATH, and without those of this process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    environment.pop("METASCHED_IMPORTS", None)  # those of the tests
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(environment: Path, *modules: str, paths: tuple[Path, ...] = ()) -> list[Path]:
    """The files that modules are imported from, where the present folder holds none of them."""
    code = f"import sys, {', '.join(modules)}; print(*(sys.modules[m].__file__ for m in {modules}))"
    shown = run(environment, "-c", code, cwd=environment.parent, paths=paths)
    return [Path(name) for name in shown.split()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, from a copy that is gone."""
    folder = tmp_path_factory.mktemp("built")
    source = copied(folder)
    run(sys.executable, *PIP, "wheel", *OFFLINE, "-w", "wheels", source, cwd=folder)
    shutil.rmtree(source)
    (built,) = (folder / "wheels").glob("metasched-*.whl")
    return built


def test_a_wheel_compares_policies_outside_the_checkout(
    wheel: Path, environment: Path, tmp_path: Path
) -> None:
    assert wheel.stat().st_size <= 2_000_000
    pip = (sys.executable, *PIP, "--python", str(environment))
    run(*pip, "install", *OFFLINE, wheel, cwd=tmp_path)
    program = environment.with_name("metasched")
    policies = ("compare", "--policies", "sjf,deeprm-operation", "--jobsets", "2")
    shown = run(program, *policies, cwd=tmp_path)
    assert "deeprm-operation" in shown


def test_a_wheel_holds_every_file_once(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    api = "tune_jobs/api/"
    wanted = {
        path.relative_to(REPOSITORY).as_posix().removeprefix(api)
        for name in PACKAGES
        for path in (REPOSITORY / name).rglob("*")
        if path.suffix in HELD and "docs" not in path.parts
    }
    assert wanted - held == set()
    assert {name for name in held if Path(name).suffix in HELD} == wanted
    assert "metasched/__init__.py" in held
    assert all(f"{name}/py.typed" in held for name in (*PACKAGES, "metasched"))
    assert not any(name.startswith(api) for name in held)


@pytest.mark.service
def test_an_editable_installation_follows_the_source(source: Path, environment: Path) -> None:
    pip = (sys.executable, *PIP, "--python", str(environment))
    run(*pip, "install", *OFFLINE, "-e", str(source), cwd=source.parent)
    room = source / "tune_jobs" / "new_room"  # which nobody had thought of then
    room.mkdir()
    (room / "__init__.py").write_text("")
    (source / "meta" / "new_module.py").write_text("")
    (source / "tune_jobs" / "api" / "metasched" / "new_module.py").write_text("")
    assert imported(
        environment,
        "metasched",
        "metasched.new_module",
        "cluster_env.core.errors",
        "meta.new_module",
        "tune_jobs.new_room",
    ) == [
        source / "tune_jobs" / "api" / "metasched" / "__init__.py",
        source / "tune_jobs" / "api" / "metasched" / "new_module.py",
        source / "cluster_env" / "core" / "errors.py",
        source / "meta" / "new_module.py",
        room / "__init__.py",
    ]
    code = "import metasched; print(metasched.__version__, metasched.InputError.__name__)"
    assert run(environment, "-c", code, cwd=source.parent).endswith(" InputError\n")
    shown = run(environment.with_name("metasched"), "--help", cwd=source.parent)
    assert "Evaluate:" in shown


def test_make_install_writes_what_type_checkers_can_follow(source: Path, environment: Path) -> None:
    """They read no import hooks, which an editable installation of two folders works by."""
    shutil.copy(REPOSITORY / "Makefile", source)
    (source / "constraints.txt").touch()
    venv_folder = environment.parents[1]
    recipe = run("make", "-nB", "install", f"VENV={venv_folder}", cwd=source).splitlines()
    (at,) = [k for k, line in enumerate(recipe) if "get_path" in line]
    run("bash", "-c", "\n".join(recipe[at : at + 2]), cwd=source)
    search = SearchPaths((), (), tuple(get_search_dirs(str(environment))[0]), ())
    finder = FindModuleCache(search, FileSystemCache(), None)
    roots = dict.fromkeys(PACKAGES, source) | {"metasched": source / "tune_jobs" / "api"}
    assert {name: finder.find_module(name) for name in roots} == {
        name: str(root / name / "__init__.py") for name, root in roots.items()
    }


def test_a_checkout_is_imported_without_an_installation(source: Path, environment: Path) -> None:
    roots = (source, source / "tune_jobs" / "api")
    found = imported(environment, "metasched", "tune_jobs.cli", paths=roots)
    assert found == [roots[1] / "metasched" / "__init__.py", source / "tune_jobs" / "cli.py"]


@pytest.mark.service
def test_extensions_that_are_installed_are_known_without_a_variable(
    environment: Path, tmp_path: Path
) -> None:
    package = tmp_path / "own"  # a copy, because building leaves files behind
    shutil.copytree(REPOSITORY / "tests" / "extensions", package, ignore=COMPILED)
    pip = (sys.executable, *PIP, "--python", str(environment))
    run(*pip, "install", *OFFLINE, package, cwd=tmp_path)
    shutil.rmtree(package)
    own = "--policies lcfs,sjf --set task.objective=tardiness --set task.world.kind=work_conserving"
    line = ["-m", "tune_jobs.cli", "compare", *own.split(), "--jobsets", "2", "--out", "out"]
    roots = (REPOSITORY, REPOSITORY / "tune_jobs" / "api")
    shown = run(environment, *line, cwd=tmp_path, paths=roots)
    assert "lcfs" in shown
    line = ["-m", "tune_jobs.cli", "--version", "--verbose"]
    listed = run(environment, *line, cwd=tmp_path, paths=roots)
    for module, thing in (("own_heuristic", "heuristic lcfs"), ("own_order", "heuristic flat")):
        assert f"extension {module} {thing} from own-extensions 0.1.0" in " ".join(listed.split())
    row = (tmp_path / "out" / "comparison.csv").read_text()
    assert "work_conserving" in row
    assert "tardiness" in row
