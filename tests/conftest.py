"""What all tests share: a quiet environment, Hypothesis profiles, golden data, a small Ray."""

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.forked_workers import ray_of_forks
from tests.isolation import changes, shared_state
from tune_jobs.terminal.running import prepare_environment

REPOSITORY = Path(__file__).resolve().parent.parent

# Set before any test imports the libraries that read them.
os.environ["MPLBACKEND"] = "Agg"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # Ray starts where a test asks for it, or not at all
RAY_CONFIG = {
    "RAY_prestart_worker_first_driver": "0",  # most tests need no worker
    "RAY_worker_niceness": "0",  # else a worker waits for all tests in other processes
}
os.environ.update(RAY_CONFIG)
PNG = b"\x89PNG\r\n\x1a\n"  # what such a file begins with
# Several processes share the cores: threads that wait for each other at barriers cost most of them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What commands remember in the user's folders, they remember elsewhere; all processes share it.
os.environ["XDG_STATE_HOME"] = os.path.join(tempfile.gettempdir(), f"metasched-state-{os.getuid()}")
os.environ["METASCHED_IMPORTS"] = "tests"  # configs may name distributions of the tests
prepare_environment()  # whichever test comes first, Ray finds the same settings

# No deadline: the first example of a test may compile the simulator.
settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    """Keeps pytest-randomly to the order of tests: our generators all have seeds of their own."""
    config.option.randomly_reset_seed = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests are no garbage: nobody looks for it among them, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish() -> None:
    """Ray draws its ports from the global generator, which pytest-randomly has seeded by now.

    The processes of pytest-xdist share that seed, and so would try the same ports.
    """
    random.seed()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as ``golden`` each test that uses the fixture, so that ``-m golden`` finds them all.

    Files with slow tests do not come last, where one process works and the others have ended.
    """
    paths = list(dict.fromkeys(item.path for item in items))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    quick = [path for path in paths if path not in slow]
    last = {*quick[len(quick) // 2 :]}
    items.sort(key=lambda item: item.path in last)
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")
        if item.get_closest_marker("service") and not os.environ.get("METASCHED_SERVICE"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: make test-service"))
        if item.get_closest_marker("slurm") and not os.environ.get("METASCHED_SLURM"):
            item.add_marker(pytest.mark.skip(reason="starts a real Slurm: make test-slurm"))
        if item.get_closest_marker("nodes") and not os.environ.get("METASCHED_NODES"):
            item.add_marker(pytest.mark.skip(reason="makes networks, minutes: make test-nodes"))


@pytest.fixture(scope="session")
def golden() -> Path:
    """Folder of the golden data; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("METASCHED_GOLDEN") or REPOSITORY.parent / "shared" / "golden")
    if not any(folder.glob("*/*")):
        pytest.skip(f"no golden data in {folder}; METASCHED_GOLDEN can name another folder")
    return folder


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray with four logical CPUs, whatever the machine has; all tests of a process share it.

    Commands called in this process use it as they find it. A second session after a first one in
    the same process costs seconds, and not all of Ray's libraries expect it.
    """
    with ray_of_forks("tests"):
        yield


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A module of tests leaves its process as it was: any other may come next."""
    before = shared_state()
    yield
    assert changes(before, shared_state()) == {}


@pytest.fixture(autouse=True)
def _no_other_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that would start a session of its own is told to share one."""
    session = sys.modules.get("tune_jobs.processes.ray_session")
    if session is not None and "local_ray" not in request.fixturenames:
        monkeypatch.setattr(
            session, "_start", lambda *_: pytest.fail("use the fixture local_ray, or a subprocess")
        )


@pytest.fixture(autouse=True)
def _tables_made_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """MLflow makes the tables of one database, which takes more than a second; others copy it."""
    store = sys.modules.get("tune_jobs.tracking.store")
    if store is None:
        return
    make = store._open
    tables = tmp_path_factory.getbasetemp() / "tables.db"

    def copy_and_open(uri: str) -> object:
        database = store.database_of(uri)
        if database is not None and not database.exists() and database.parent.is_dir():
            if not tables.exists():
                aside = tables.with_name(f"tables-{uuid.uuid4().hex}.db")
                make(f"sqlite:///{aside}")
                aside.rename(tables)
            shutil.copyfile(tables, database)
        return make(uri)

    monkeypatch.setattr(store, "_open", copy_and_open)


@pytest.fixture(autouse=True)
def _pictures_without_pixels(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures are drawn; rendering takes a third of a second, and is for tests about pictures."""
    figure = sys.modules.get("matplotlib.figure")
    if figure is None or request.node.get_closest_marker("rendered"):
        return
    render = figure.Figure.savefig

    def save(self: object, file: object, **options: object) -> None:
        if isinstance(file, Path):
            file.write_bytes(PNG)
        else:
            render(self, file, **options)

    monkeypatch.setattr(figure.Figure, "savefig", save)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children hear SIGINT, also where pytest was told to ignore it, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
