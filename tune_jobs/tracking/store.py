"""One MLflow store, and the few calls that we make to it."""

import contextlib
import logging
import math
import os
import re
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cluster_env.core.errors import InputError
from rllib_configs.policy_files import read_policy_config
from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.model import ABOUT_MODELS, about, build_model, fingerprint, may_be_model
from tune_jobs.tracking.moving import mend_addresses, require_plain
from tune_jobs.tracking.notes import NOTE_TAG, sections_of, with_sections, with_verdicts
from tune_jobs.tracking.places import ARTIFACT_FOLDER, database_of, local_store, local_uri
from tune_jobs.tracking.values import Point, as_numbers

if TYPE_CHECKING:
    from mlflow.entities import Run

    from tune_jobs.tracking.client import Client

T = TypeVar("T")

MODEL_NAME = "policy"
POLICY_FOLDER = "policy"
"""Of a run's artifacts: what its model is made of."""

WEIGHTS_TAG = "metasched.weights"
MODEL_TAG = "metasched.model"
"""Of a run that has a model: the name that it is registered under, or nothing."""

KEY_TAG = "metasched.run_key"
FOLDER_TAG = "metasched.folder"
"""Of all runs that were recorded for a run directory: the key of that."""

PARENT_TAG = "mlflow.parentRunId"

MAX_METRICS = 1_000  # in one call, MLflow's limits
MAX_PARAMS = 100
MAX_TAGS = 100
MOST_RUNS = 50_000

POINTS_AT_ONCE = 10_000
"""Points of the local store that are in memory at a time."""

# A server that is away must be noticed soon, and nobody waits for its statistics. Set for this
# process and those it starts, where the user has not set them.
QUIET_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}

# They report each migration, and each retry that we report ourselves.
QUIET_LOGGERS = {"alembic": logging.WARNING, "urllib3.connectionpool": logging.ERROR}

# What a store answers when a record itself is at fault, so that sending it again cannot help.
REFUSALS = {"INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST"}


class StoreAway(Exception):
    """The store cannot be reached, or does not work."""


def refused(error: Exception) -> bool:
    """True if the store has understood a call and will never accept it."""
    return getattr(error, "error_code", None) in REFUSALS


class Store:
    """A connection to the store at ``uri``. Importing MLflow takes seconds: build it in a thread.

    Artifacts of a store that is no server lie in a folder.

    Raises:
        StoreAway: The store does not answer, or the URI means nothing to MLflow.
    """

    def __init__(self, uri: str, artifacts: Path) -> None:
        self.uri, self._artifacts = uri, artifacts
        self._experiments: dict[str, str] = {}
        self._is_server = uri.startswith(("http://", "https://"))
        try:
            for name, value in QUIET_DEFAULTS.items():
                os.environ.setdefault(name, value)
            for name, level in QUIET_LOGGERS.items():
                if logging.getLogger(name).level == logging.NOTSET:
                    logging.getLogger(name).setLevel(level)
            database = database_of(uri)
            if database is None:
                self._client = _open(uri)
                return
            # Two processes that both find no tables would both create them.
            with FileLock(Path(f"{database}.lock")):
                if database.exists():
                    require_plain(database)
                    mend_addresses(database)
                else:
                    _create(database)
                self._client = _open(uri)
        except Exception as error:
            raise StoreAway(reason(error)) from error

    def experiment(self, name: str) -> str:
        """Id of the experiment, created or restored as needed."""
        if name not in self._experiments:
            self._experiments[name] = self._find_experiment(name) or self._create_experiment(name)
        return self._experiments[name]

    def _find_experiment(self, name: str) -> str | None:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            return None
        if found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        return found.experiment_id

    def _create_experiment(self, name: str) -> str:
        location = None if self._is_server else self._folder_of(name).as_uri()
        # Without this tag the UI asks a newcomer whether the runs are chat traces.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        try:
            return self._client.create_experiment(name, artifact_location=location, tags=tags)
        except Exception:
            found = self._find_experiment(name)  # another process may have been faster
            if found is None:
                raise
            return found

    def _folder_of(self, experiment: str) -> Path:
        folder = re.sub(r"[^\w.-]+", "_", experiment).lstrip(".") or "_"  # never the one above
        return self._artifacts / folder

    def experiment_of(self, run: "Run") -> str:
        """Name of the experiment of a run."""
        return self._client.get_experiment(run.info.experiment_id).name

    def run(self, run_id: str) -> "Run":
        """Status, parameters, tags and newest metrics of a run."""
        return self._client.get_run(run_id)

    def find_run(self, experiment: str, key: str) -> str | None:
        """Id of the run that was created under our key, None if there is none."""
        found = self._search(experiment, f"tags.`{KEY_TAG}` = '{key}'")
        return found[0].info.run_id if found else None

    def family(self, experiment: str, key: str) -> "list[Run]":
        """All runs that were recorded for the run directory of a key: its own, and those below."""
        return self._search(experiment, f"tags.`{FOLDER_TAG}` = '{key}'")

    def _search(self, experiment: str, condition: str) -> "list[Run]":
        ids = [self.experiment(experiment)]
        return list(self._client.search_runs(ids, condition, max_results=MOST_RUNS))

    def create_run(self, experiment: str, name: str, time_ms: int, tags: Mapping[str, str]) -> str:
        """Creates a run and returns its id; `KEY_TAG` among its tags finds it again."""
        run = self._client.create_run(
            self.experiment(experiment), start_time=time_ms, run_name=name, tags=dict(tags)
        )
        return run.info.run_id

    def last_steps(self, run_id: str) -> dict[str, int]:
        """The last step of each metric of a run."""
        metrics = self.run(run_id).data.to_proto().metrics
        return {metric.key: metric.step for metric in metrics}

    def points(self, run_id: str, points: Sequence[Point]) -> None:
        """Adds points to the curves of a run."""
        for chunk in batched(points, MAX_METRICS):
            self._client.add_points(run_id, chunk)

    def params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Adds parameters. MLflow keeps the first value; another becomes a tag ``changed.NAME``."""
        known = self.run(run_id).data.params
        new = [(name, value) for name, value in params.items() if name not in known]
        for chunk in batched(new, MAX_PARAMS):
            self._client.add_params(run_id, chunk)
        changed = {n: value for n, value in params.items() if known.get(n, value) != value}
        self.tags(run_id, {f"changed.{name}": value for name, value in changed.items()})

    def tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Sets tags; a later value replaces an earlier one."""
        for chunk in batched(tags.items(), MAX_TAGS):
            self._client.set_tags(run_id, chunk)

    def artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """Copies a file, or a folder under its own name, into the run's artifacts."""
        if path.is_dir():
            place = path.name if folder is None else f"{folder}/{path.name}"
            self._client.log_artifacts(run_id, str(path), place)
        else:
            self._client.log_artifact(run_id, str(path), folder)

    def model(self, run_id: str, policy: Path, register: str | None) -> None:
        """Makes a policy a model of a run, and a version of a registered one, unless it is.

        Policies of agents are no models, and stay artifacts.
        """
        config = read_policy_config(policy)
        if not may_be_model(config):
            return
        key = fingerprint(policy)
        experiment = self._client.get_run(run_id).info.experiment_id
        found = self._client.search_logged_models(
            [experiment], filter_string=f"tags.`{WEIGHTS_TAG}` = '{key}'"
        )
        known = [m.model_id for m in found if m.source_run_id == run_id and m.status == "READY"]
        if known:
            model_id = known[0]
        else:
            model = self._client.create_logged_model(
                experiment,
                MODEL_NAME,
                source_run_id=run_id,
                tags={WEIGHTS_TAG: key, NOTE_TAG: about(config)},
            )
            model_id = model.model_id
            with tempfile.TemporaryDirectory(prefix="metasched-model-") as folder:
                build_model(policy, Path(folder) / MODEL_NAME, model_id, run_id)
                self._client.log_model_artifacts(model_id, str(Path(folder) / MODEL_NAME))
            self._client.finalize_logged_model(model_id, "READY")
            self._client.add_model(run_id, model_id)
        if register is not None:
            self._register(register, model_id, run_id, key)

    def _register(self, name: str, model_id: str, run_id: str, key: str) -> None:
        """Enters a model as a new version, unless it is one."""
        with contextlib.suppress(Exception):  # it is there already, or the next call says more
            self._client.create_registered_model(name, description=ABOUT_MODELS)
        versions = self._client.search_model_versions(f"name = '{name}'")
        if any(v.run_id == run_id and v.tags.get(WEIGHTS_TAG) == key for v in versions):
            return
        run, source = self.run(run_id), self._client.get_logged_model(model_id).artifact_location
        sections = sections_of(run.data.tags.get(NOTE_TAG, ""))
        self._client.create_model_version(
            name,
            source,
            run_id,
            {WEIGHTS_TAG: key},
            description=with_verdicts(
                f"From the run {run.info.run_name}, whose description has the tables.", sections
            ),
            model_id=model_id,
        )

    def note(self, run_id: str, sections: Mapping[str, str]) -> None:
        """Adds sections to the run's description, or replaces those of the same titles.

        Registered models of the run get what the sections say first, because what is found later,
        such as a comparison with more rules, may say the opposite.
        """
        tags = self.run(run_id).data.tags
        before = tags.get(NOTE_TAG, "")
        if (note := with_sections(before, sections)) != before:
            self._client.set_tag(run_id, NOTE_TAG, note)
        if not (registered := tags.get(MODEL_TAG)):
            return
        for version in self._client.search_model_versions(f"name = '{registered}'"):
            before = version.description or ""
            if version.run_id == run_id and (note := with_verdicts(before, sections)) != before:
                self._client.update_model_version(registered, version.version, note)

    def end(self, run_id: str, status: str, time_ms: int) -> None:
        """Sets the final status: FINISHED, FAILED or KILLED."""
        self._client.set_terminated(run_id, status=status, end_time=time_ms)

    def reopen(self, run_id: str) -> None:
        """Marks a run as running again."""
        self._client.update_run(run_id, status="RUNNING")


class LocalStore(Store):
    """The store beside the runs of a folder: a SQLite database, and a folder for files.

    Whoever hands on a folder of runs may have changed all of it. So files go to and come from the
    folder beside the database, whatever address the database has for them.
    """

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()
        super().__init__(local_uri(home), self.home / ARTIFACT_FOLDER)

    def artifacts_of(self, run_id: str) -> Path:
        """Folder of a run's artifacts."""
        if not re.fullmatch(r"[0-9a-f]{32}", run_id):
            raise InputError(f"{local_store(self.home)} has a run of the id {run_id[:40]!r}")
        folder = self._folder_of(self.experiment_of(self.run(run_id))) / run_id / "artifacts"
        if escapes(folder, self._artifacts):
            raise InputError(f"links in {folder} lead out of {self._artifacts}")
        return folder

    def artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """See `Store.artifact`."""
        target = self.artifacts_of(run_id) / (folder or "") / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)

    def model(self, run_id: str, policy: Path, register: str | None) -> None:
        """See `Store.model`; a tag of the run says that it has one, and under which name."""
        run = self.run(run_id)
        place = self._client.get_experiment(run.info.experiment_id).artifact_location
        if place != self._folder_of(self.experiment_of(run)).as_uri():
            raise InputError(f"the models of this store lie elsewhere, in {place}")
        super().model(run_id, policy, register)
        self.tags(run_id, {MODEL_TAG: register or run.data.tags.get(MODEL_TAG, "")})

    def note(self, run_id: str, sections: Mapping[str, str]) -> None:
        """See `Store.note`."""
        with FileLock(Path(f"{local_store(self.home)}.lock")):  # what is read is replaced
            super().note(run_id, sections)

    def points_after(self, run_id: str, row: int) -> Iterator[tuple[int, Point]]:
        """The points of a run as they were written, behind a row (0 for all), each with its row.

        MLflow can only be asked for all points of a metric, again and again. Whoever takes them may
        send them to a slow server, so others can write to the database between pieces.
        """
        question = (
            "SELECT rowid, key, value, is_nan, timestamp, step FROM metrics "
            "WHERE run_uuid = ? AND rowid > ? ORDER BY rowid LIMIT ?"
        )
        place = local_store(self.home)
        with contextlib.closing(sqlite3.connect(place, timeout=30.0)) as database:
            while piece := database.execute(question, (run_id, row, POINTS_AT_ONCE)).fetchall():
                for row, name, value, is_nan, *when in piece:
                    yield row, (name, math.nan if is_nan else value, *when)

    def complete(
        self, run_id: str, rows: Iterable[tuple[int, Mapping[str, float]]], time_ms: int
    ) -> None:
        """Adds those points of a table that come after the last ones of their metrics."""
        last = self.last_steps(run_id)
        points = [
            (name, value, time_ms, step)
            for step, row in rows
            for name, value in as_numbers(row)[0].items()
            if step > last.get(name, step - 1)
        ]
        self.points(run_id, points)

    def last_time(self, run_id: str) -> int:
        """When the last point of a run was recorded, in ms since 1970; 0 without any."""
        return max((point[2] for _, point in self.points_after(run_id, 0)), default=0)


def escapes(path: Path, home: Path) -> bool:
    """Whether a path, or anything below it, leads out of a folder, or the folder itself does."""
    if home.is_symlink():
        return True
    home = home.resolve()
    if not path.resolve().is_relative_to(home):
        return True
    if not path.is_dir():
        return False
    links = (
        Path(parent, name)
        for parent, folders, files in os.walk(path)
        for name in (*folders, *files)
        if Path(parent, name).is_symlink()
    )
    return any(not link.resolve().is_relative_to(home) for link in links)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most ``size``."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _open(uri: str) -> "Client":
    """A client that has been answered."""
    from tune_jobs.tracking.client import Client  # MLflow, which takes seconds

    client = Client(tracking_uri=uri, registry_uri=uri)
    client.search_experiments(max_results=1)
    return client


def _create(database: Path) -> None:
    """Creates a database; it is complete or not there, whenever this is killed."""
    for left in database.parent.glob(f".{database.name}.*.new"):
        left.unlink()
    aside = database.with_name(f".{database.name}.{uuid.uuid4().hex}.new")  # MLflow keeps it open
    _open(f"sqlite:///{aside}")
    os.replace(aside, database)


def reason(error: Exception) -> str:
    """What an error of MLflow comes down to, in a few words."""
    text = str(error).strip() or type(error).__name__
    system = re.search(r"\[Errno -?\d+\] ([^'\"):]+)", text)
    if system:
        return system[1].strip()
    if "timed out" in text:
        return "timed out"
    if status := re.search(r"too many (\d+) error responses", text):
        return f"it answers {status[1]}"
    return text.splitlines()[0].split(". ")[0][:200]
