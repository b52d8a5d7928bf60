"""One MLflow store, and the few calls that we make to it."""

import contextlib
import logging
import os
import re
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tune_jobs.terminal.files import FileLock
from tune_jobs.tracking.model import build_model, fingerprint, may_be_model
from tune_jobs.tracking.moving import mend_addresses
from tune_jobs.tracking.notes import NOTE_TAG, with_section
from tune_jobs.tracking.places import database_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

MODEL_NAME = "policy"
MODEL_TAG = "metasched.weights"
RUN_KEY_TAG = "metasched.run_key"
PARENT_TAG = "mlflow.parentRunId"

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


Point = tuple[str, float, int, int]
"""Name, value, time in milliseconds since 1970, step."""


class StoreAway(Exception):
    """The store cannot be reached or does not work; what waits stays on disk."""

    @property
    def is_slow(self) -> bool:
        """Whether the store may be there, and only did not answer in time."""
        return "timed out" in str(self)


def refused(error: Exception) -> bool:
    """True if the store has understood a call and will never accept it."""
    return getattr(error, "error_code", None) in REFUSALS


class Store:
    """A connection to the store at ``uri``. Importing MLflow takes seconds: build it in a thread.

    Args:
        uri: MLflow tracking URI.
        artifacts_dir: Folder for artifacts of a store that is a database without a server.

    Raises:
        StoreAway: The store does not answer, or the URI means nothing to MLflow.
    """

    def __init__(self, uri: str, artifacts_dir: Path) -> None:
        self.uri = uri
        self._artifacts_dir = artifacts_dir
        self._experiments: dict[str, str] = {}
        self._steps: dict[tuple[str, str], set[int]] = {}  # there already, by run and metric
        try:
            self._client = self._connect()
        except Exception as error:
            raise StoreAway(reason(error)) from error

    def _connect(self) -> "MlflowClient":
        for name, value in QUIET_DEFAULTS.items():
            os.environ.setdefault(name, value)
        for name, level in QUIET_LOGGERS.items():
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(level)
        database = database_of(self.uri)
        if database is None:
            return _open(self.uri)
        # Two processes that both find no tables would both create them.
        with FileLock(Path(f"{database}.lock")):
            if database.exists():
                mend_addresses(database)
            else:
                _create(database)
            return _open(self.uri)

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
        location = None
        if not self.uri.startswith(("http://", "https://")):
            folder = re.sub(r"[^\w.-]+", "_", name).lstrip(".") or "_"  # never the one above
            location = (self._artifacts_dir / folder).as_uri()
        # Without this tag the UI asks a newcomer whether the runs are chat traces.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        try:
            return self._client.create_experiment(name, artifact_location=location, tags=tags)
        except Exception:
            found = self._find_experiment(name)  # another process may have been faster
            if found is None:
                raise
            return found

    def find_run(self, experiment: str, key: str) -> str | None:
        """Id of the run that was created under our key, None if there is none."""
        found = self._client.search_runs(
            [self.experiment(experiment)], filter_string=f"tags.`{RUN_KEY_TAG}` = '{key}'"
        )
        return found[0].info.run_id if found else None

    def create_run(
        self, experiment: str, key: str, name: str, time_ms: int, tags: Mapping[str, str]
    ) -> str:
        """Creates a run that `find_run` will find by its key; returns its id."""
        run = self._client.create_run(
            self.experiment(experiment),
            start_time=time_ms,
            run_name=name,
            tags={**tags, RUN_KEY_TAG: key},
        )
        return run.info.run_id

    def has_run(self, run_id: str) -> bool:
        """False if the store does not know the run or somebody has deleted it there."""
        try:
            return self._client.get_run(run_id).info.lifecycle_stage == "active"
        except Exception as error:
            if refused(error):
                return False
            raise

    @property
    def keeps_doubles(self) -> bool:
        """Whether it lists a point twice that is sent twice: MLflow's old store of files does."""
        return self.uri.startswith("file:") or "://" not in self.uri

    def metrics(self, run_id: str, points: Sequence[Point], *, again: bool = False) -> None:
        """At most 1,000 points (name, value, time in ms, step).

        Args:
            run_id: of the run.
            points: to send.
            again: whether to leave out points of steps that a metric has a value of already.
        """
        from mlflow.entities import Metric

        points = self._new(run_id, points) if again else points
        self._steps = self._steps if again else {}
        self._client.log_batch(run_id, metrics=[Metric(*point) for point in points])

    def _new(self, run_id: str, points: Sequence[Point]) -> list[Point]:
        """Those of the points whose step has no value yet; asks once for each metric."""
        new = []
        for point in points:
            name, _, _, step = point
            if (run_id, name) not in self._steps:
                history = self._client.get_metric_history(run_id, name)
                self._steps[run_id, name] = {there.step for there in history}
            steps = self._steps[run_id, name]
            if step not in steps:
                new.append(point)
                steps.add(step)
        return new

    def params(self, run_id: str, params: Sequence[tuple[str, str]]) -> None:
        """At most 100 parameters. MLflow refuses another value for a known name."""
        from mlflow.entities import Param

        self._client.log_batch(run_id, params=[Param(*param) for param in params])

    def tags(self, run_id: str, tags: Sequence[tuple[str, str]]) -> None:
        """At most 100 tags; a later value replaces an earlier one."""
        from mlflow.entities import RunTag

        self._client.log_batch(run_id, tags=[RunTag(*tag) for tag in tags])

    def note(self, run_id: str, title: str, text: str) -> None:
        """Adds a section to the run's description, or replaces the one of that title."""
        before = self._client.get_run(run_id).data.tags.get(NOTE_TAG, "")
        self._client.set_tag(run_id, NOTE_TAG, with_section(before, title, text))

    def artifact(self, run_id: str, path: Path, folder: str | None) -> None:
        """Copies a file, or a folder under its own name, into the run's artifacts."""
        self._client.log_artifact(run_id, str(path), folder)

    def model(self, run_id: str, policy: Path, register: str | None) -> None:
        """Makes a policy a model of a run, and a version of a registered one, unless it is.

        Policies of agents are no models, and stay artifacts.
        """
        from rllib_configs.policy_files import read_policy_config

        if not may_be_model(read_policy_config(policy)):
            return
        from mlflow.entities import LoggedModelOutput

        key = fingerprint(policy)
        experiment = self._client.get_run(run_id).info.experiment_id
        found = self._client.search_logged_models(
            [experiment], filter_string=f"tags.`{MODEL_TAG}` = '{key}'"
        )
        known = [m.model_id for m in found if m.source_run_id == run_id and m.status == "READY"]
        if known:
            model_id = known[0]
        else:
            model = self._client.create_logged_model(
                experiment, MODEL_NAME, source_run_id=run_id, tags={MODEL_TAG: key}
            )
            model_id = model.model_id
            with tempfile.TemporaryDirectory(prefix="metasched-model-") as folder:
                build_model(policy, Path(folder) / MODEL_NAME, model_id, run_id)
                self._client.log_model_artifacts(model_id, str(Path(folder) / MODEL_NAME))
            self._client.finalize_logged_model(model_id, "READY")
            self._client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])
        if register is not None:
            self._register(register, model_id, run_id, key)

    def _register(self, name: str, model_id: str, run_id: str, key: str) -> None:
        """Enters a model as a new version, unless it is one."""
        with contextlib.suppress(Exception):  # it is there already, or the next call says more
            self._client.create_registered_model(name)
        versions = self._client.search_model_versions(f"name = '{name}'")
        if any(v.run_id == run_id and v.tags.get(MODEL_TAG) == key for v in versions):
            return
        source = self._client.get_logged_model(model_id).artifact_location
        tags = {MODEL_TAG: key}
        self._client.create_model_version(name, source, run_id, tags, model_id=model_id)

    def num_points(self, run_id: str, metric: str) -> int:
        """How many points of a metric there are."""
        return len(self._client.get_metric_history(run_id, metric))

    def end(self, run_id: str, status: str, time_ms: int) -> None:
        """Sets the final status: FINISHED, FAILED or KILLED."""
        self._client.set_terminated(run_id, status=status, end_time=time_ms)

    def reopen(self, run_id: str) -> None:
        """Marks a run as running again."""
        self._client.update_run(run_id, status="RUNNING")


def _open(uri: str) -> "MlflowClient":
    """A client that has been answered."""
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
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
    return text.splitlines()[0].split(". ")[0][:200]
