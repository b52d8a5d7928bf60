"""Files of others run no code and name nothing outside; secrets stay in the environment."""

import base64
import csv
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from rllib_configs.config.loading import config_text, load_config
from rllib_configs.config.secrets import hide_secrets, holds_secret
from rllib_configs.policy_files import load_policy
from tests.tune_jobs.sweeps.tiny import sweep
from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import cli, sync
from tune_jobs.commands.training import Tune
from tune_jobs.measuring.markdown import _name
from tune_jobs.runs.checkpoints import MANIFEST, Checkpoints
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.sweeps import launching
from tune_jobs.sweeps.folder import SweepFolder, create_sweep
from tune_jobs.tables.frames import write_table
from tune_jobs.tables.printing import as_markdown, code_span
from tune_jobs.tracking import Tracker, local_store, local_uri, tracking_dir
from tune_jobs.tracking.notes import NOTE_TAG
from tune_jobs.tracking.places import server_uri
from tune_jobs.tracking.process import is_gone, this_process
from tune_jobs.tracking.recording import record_result
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.store import LocalStore, Store, StoreAway, escapes

PLANTED = "pl4nted-s3cret"


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("tag", ["python/object/apply:os.mkdir", "python/name:os.system", "env"])
def test_no_tag_in_yaml_runs_code(tmp_path: Path, tag: str) -> None:
    target = tmp_path / "made"
    file = tmp_path / "evil.yaml"
    file.write_text(f"name: !!{tag} ['{target}']\n")
    with pytest.raises(InputError, match="is not valid YAML"):
        load_config(file)
    with pytest.raises(InputError, match=r"--set .* is not valid YAML"):
        load_config("deeprm-smoke", [f"name=!!{tag} ['{target}']"])
    assert not target.exists()


def test_no_policy_runs_code(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: evil\n")
    (tmp_path / "weights.pt").write_bytes(pickle.dumps(Bomb(tmp_path / "made")))
    with pytest.raises(InputError, match=r"weights.pt is broken.*something else than plain"):
        load_policy(tmp_path)
    assert not (tmp_path / "made").exists()


def test_no_weights_ask_for_more_memory_than_their_file_has(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: large\n")
    weights = tmp_path / "weights.pt"
    repeated = torch.zeros(1).expand(65_536, 65_536)
    torch.save({"network.w": repeated}, weights)
    assert weights.stat().st_size < 5_000
    with pytest.raises(InputError, match=r"weights.pt is broken: it asks for 17,179,869,184 bytes"):
        load_policy(tmp_path)
    one = torch.zeros(1_000)
    torch.save({f"network.{k}": one for k in range(100)}, weights)
    with pytest.raises(InputError, match="it asks for 400,000 bytes"):
        load_policy(tmp_path)


def test_no_weights_are_unpacked_to_more_than_their_file_has(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: large\n")
    torch.save({"network.w": torch.zeros(1_000_000)}, tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as plain,
        zipfile.ZipFile(tmp_path / "weights.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for entry in plain.infolist():
            packed.writestr(entry.filename, plain.read(entry))
    with pytest.raises(InputError, match=r"weights.pt is broken: it unpacks to 4,\d+,\d+ bytes"):
        load_policy(tmp_path)


@pytest.mark.parametrize("name", ["\x1b[31mred", "=1+1", "@sum", "-x", "+x", "", "x" * 100_000])
def test_a_config_of_a_stranger_has_a_harmless_name(name: str) -> None:
    with pytest.raises(InputError, match="1 to 200 printable characters") as refusal:
        load_config("deeprm-smoke", {"name": name})
    assert len(str(refusal.value)) < 300
    assert str(refusal.value).isprintable()


def test_no_name_of_a_folder_reaches_a_terminal_or_a_spreadsheet_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["=HYPERLINK(1)", "-2+3", "\x1b[31mred", "plain"]
    for name in names:  # all of one preset, so that tables have to call them by their folders
        make_run(tmp_path / "runs" / name)
    runs = ",".join(f"runs/{name}" for name in names)
    given = ["compare", "--policies", f"sjf,{runs}", "--jobsets", "2", "--out", "compared"]
    assert cli.run(cli.metasched, given) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "?[31mred" in shown.out
    [table] = (tmp_path / "compared").glob("*.csv")
    cells = {row["policy"].partition(" ")[0] for row in csv.DictReader(table.open())}
    assert cells == {"sjf", "'=HYPERLINK(1)", "'-2+3", "?[31mred", "plain"}
    assert cli.run(cli.metasched, ["compare", "--policies", "runs/\x1b[31mgone"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_numbers_below_0_stay_numbers(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"a": "-1.5", "b": -2.5, "c": "+3", "d": "-x", "e": "a\nb"}])
    assert (tmp_path / "t.csv").read_text() == 'a,b,c,d,e\n-1.5,-2.5,+3,\'-x,"a\nb"\n'


@pytest.mark.parametrize("name", ["../../other", "/etc/hostname", "link"])
def test_a_checkpoint_names_nothing_outside_itself(tmp_path: Path, name: str) -> None:
    kept = Checkpoints(tmp_path / "checkpoints")
    path = kept.write(1, lambda folder: (folder / "state").touch(), keep=1).path
    (tmp_path / "other").touch()
    (path / "link").symlink_to(tmp_path / "other")
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["files"] = [[name, 0, manifest["files"][0][2]]]
    (path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="which lies elsewhere"):
        kept.newest()


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address that somebody else listens on, and the requests that came."""
    requests: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            requests.append(str(self.client_address))
            super().handle_one_request()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()
    server.server_close()


def test_no_run_of_a_stranger_names_where_credentials_go(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listener: tuple[str, list[str]],
    capsys: pytest.CaptureFixture,
) -> None:
    host, requests = listener
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", f"{PLANTED}1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run, elsewhere = make_run(tmp_path / "runs" / "stranger"), tmp_path / "elsewhere"
    with Tracker.open(run, run_name="r"):
        pass
    content = json.loads((tracking_dir(run) / "run.json").read_text())
    planted = {"uri": f"http://{host}", "beside": "../../elsewhere/mlflow.db"}
    (tracking_dir(run) / "run.json").write_text(json.dumps({**content, **planted, "sent": True}))
    (tracking_dir(run) / "spool.jsonl").write_text(json.dumps({"kind": "open", **planted}))
    with (run / "config.yaml").open("a") as config:
        config.write(f"tracking: {{uri: 'http://{host}'}}\n")
    with sqlite3.connect(local_store(tmp_path / "runs")) as database:
        for table, column in (("runs", "artifact_uri"), ("experiments", "artifact_location")):
            database.execute(f"UPDATE {table} SET {column} = ?", (f"mlflow-artifacts://{host}/x",))
    given = ["compare", "--policies", f"sjf,{run}", "--jobsets", "2"]
    assert cli.run(cli.metasched, given) == 0
    hint = f"metasched sync {run} --tracking-uri URI"
    assert hint in capsys.readouterr().err
    record_result(tmp_path / "out", "adaptation", "x", curves=[(0, {"a": 1})], beside=run)
    for more in ([], ["--register", "x"], ["--gone"]):
        cli.run(cli.metasched, ["sync", str(run), *more])
    assert requests == []
    assert not elsewhere.exists()
    assert models(tmp_path / "runs") == []
    assert "Comparison" in (note := note_of(run))
    assert host not in note


def test_no_run_or_sweep_of_a_stranger_says_it_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    planted = "http://127.0.0.1:9"
    run, text = tmp_path / "run", config_text(load_config("deeprm", {"tracking.uri": planted}))
    run.mkdir()
    (run / "config.yaml").write_text(text)
    assert find_resumption(run).config.tracking.uri is None
    assert f"recorded at {planted}, too; set MLFLOW_TRACKING_URI" in caplog.text
    mine = find_resumption(run, {"tracking.uri": "sqlite:///mine.db"}).config
    assert mine.tracking.uri == "sqlite:///mine.db"

    (tmp_path / "preset.yaml").write_text(text)
    preset = str(tmp_path / "preset.yaml")
    tiny = sweep(preset=preset, settings={"tracking.uri": planted})
    folder = create_sweep(tiny, tmp_path, tmp_path / "sweep")
    folder.unlock()
    resumed: list[SweepFolder] = []

    def stop(folder: SweepFolder, **options: object) -> None:
        resumed.append(folder)
        raise InputError("enough")

    monkeypatch.setattr(launching, "run_sweep", stop)
    for uri in (None, "sqlite:///mine.db"):
        with pytest.raises(InputError, match="enough"):
            launching.launch_sweep(Tune(resume=folder.path, tracking_uri=uri), lambda *_: None)
        preset, settings = resumed[-1].sweep.preset, resumed[-1].sweep.settings
        assert load_config(preset).tracking.uri == planted
        assert load_config(preset, settings).tracking.uri == uri


def models(runs: Path) -> list[Any]:
    import mlflow

    return list(mlflow.MlflowClient(local_uri(runs), local_uri(runs)).search_model_versions())


def note_of(run: Path) -> str:
    file, store = read_run_file(run), LocalStore(run.parent)
    return str(store.run(str(store.find_run(file.experiment, file.key))).data.tags[NOTE_TAG])


def test_no_link_in_a_policy_is_followed_when_it_is_registered(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with Tracker.open(run, run_name="r"):
        pass
    (run / "policy" / "weights.pt").rename(tmp_path / "secret")
    (run / "policy" / "weights.pt").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="lead out of"):
        CliRunner().invoke(sync.command, [str(run), "--register", "x"], catch_exceptions=False)


@pytest.mark.parametrize("name", ["../secret", "link", "folder"])
def test_what_leads_out_of_a_folder_is_noticed(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (home / "link").symlink_to(tmp_path / "secret")
    (home / "folder" / "link").symlink_to(tmp_path / "secret")
    assert escapes(home / name, home)
    assert not escapes(home / "nothing", home)


def test_an_experiment_stays_below_the_folder_of_artifacts(tmp_path: Path) -> None:
    made = []
    store = Store.__new__(Store)
    store._is_server, store._artifacts, store._experiments = False, tmp_path / "a", {}
    store._client = SimpleNamespace(
        create_experiment=lambda name, artifact_location, tags: made.append(artifact_location)
    )
    for name in ("..", "../x", "/etc", "."):
        store._create_experiment(name)
    assert all(Path(uri.removeprefix("file://")).parent == tmp_path / "a" for uri in made)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 300, "models:/x"])
def test_a_registered_model_has_a_plain_name(name: str) -> None:
    with pytest.raises(InputError, match=r"tracking\.model"):
        load_config("deeprm-smoke", [f"tracking.model={json.dumps(name)}"])


BASIC = base64.b64encode(f"me:{PLANTED}".encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{PLANTED}@host/db is away",
        f"postgresql://me:pa/{PLANTED}@host/db is away",
        f"postgresql://me:{PLANTED}/w@rd@host/db is away",
        f"http://:{PLANTED}@host, then http://you:x/{PLANTED}@other",
        f"http://{PLANTED}@host/",
        f"metasched sync --api-token {PLANTED}",
        f"tried https://host/?access_key={PLANTED}&x=1",
        f"https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={PLANTED}&x=1",
        f"https://b.s3.amazonaws.com/k?X-Amz-Security-Token={PLANTED}",
        f"https://storage.googleapis.com/b/k?X-Goog-Signature={PLANTED}",
        f"https://a.blob.core.windows.net/c?sv=2024&sig={PLANTED}",
        f"https://d.cloudfront.net/k?Signature={PLANTED}&Key-Pair-Id=x",
        f"password = '{PLANTED}'",
        f"password = 'it\\'s {PLANTED}'",
        f"X-Token: {PLANTED}",
        f'{{"user": "me", "password": "{PLANTED}"}}',
        f'{{"api_key" : "a\\"{PLANTED}"}}',
        f"{{'access-token': '{PLANTED}'}}",
        f'"{{\\"secret\\": \\"a {PLANTED}\\"}}"',
        f"Authorization: Bearer {PLANTED}",
        f"{{'Authorization': 'Custom a {PLANTED}'}}",
        f"curl -H 'Proxy-Authorization: Digest a={PLANTED}'",
        f"Cookie: session={PLANTED}; b={PLANTED}",
        f"the server refused bearer {PLANTED}",
        f"sent Basic {BASIC}",
        f"Authorization=Basic {BASIC}",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={PLANTED}==;EndpointSuffix=x",
        f"BlobEndpoint=https://a;SharedAccessSignature=sv=1&sig={PLANTED}",
        f"Endpoint=sb://a;SharedAccessKeyName=x;SharedAccessKey={PLANTED}",
        f"Server=a;User Id=me;Pwd={PLANTED}",
        f"from the environment: {PLANTED}-of-mine",
        f"from an address of the environment: e/{PLANTED}/e",
    ],
)
def test_secrets_are_hidden(text: str) -> None:
    environment = {
        "MY_DB_PASSWORD": f"{PLANTED}-of-mine",
        "MLFLOW_TRACKING_URI": f"http://me:e%2F{PLANTED}%2Fe@host",
    }
    found = hide_secrets(text, environment)
    assert PLANTED not in found
    assert BASIC not in found


@pytest.mark.parametrize(
    "uri",
    [
        f"http://me:{PLANTED}@host",
        f"postgresql://me:a/{PLANTED}@host/db",
        f"https://host/?token={PLANTED}",
        f"https://host/?sig={PLANTED}",
    ],
)
def test_a_config_takes_no_address_with_a_secret(uri: str) -> None:
    with pytest.raises(InputError, match="an address must hold no password") as refusal:
        load_config("deeprm-smoke", [f"tracking.uri={uri}"])
    assert PLANTED not in str(refusal.value)


def test_what_is_no_secret_stays() -> None:
    environment = {
        "RAY_AUTH_MODE": "token",
        "PWD": "/home/me",
        "OLDPWD": "/home/me",
        "SSH_AUTH_SOCK": "/tmp/agent",
    }
    for text in (
        "metasched train deeprm --set training.lr=3e-4 --run /home/me/runs/token",
        "http://host:5000/#/experiments/1",
        "http://host:5000/api/runs and https://github.com/a/b@v1",
        "sqlite:////home/me@work/a:b/mlflow.db",
        "/tmp/agent is a token of nothing",
        "basic training with the basic policies, a bearer of news",
        "signature of the model: inputs",
    ):
        assert hide_secrets(text, environment) == text
        assert not holds_secret(text)


def test_an_address_with_a_password_is_refused_and_not_repeated(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    uri = f"http://me:{PLANTED}@127.0.0.1:9"
    given = [
        "train",
        "deeprm-smoke",
        "--set",
        f"tracking.uri={uri}",
        "--run",
        str(tmp_path / "run"),
    ]
    assert cli.run(cli.metasched, given) == 2
    error = capsys.readouterr().err
    assert "set MLFLOW_TRACKING_URI in the environment" in error
    assert PLANTED not in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("password", [f"{PLANTED}1", f"a/{PLANTED}1/b"])
def test_planted_secrets_are_nowhere_in_the_records(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    password: str,
) -> None:
    uri = f"http://me:{password}@127.0.0.1:9"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{PLANTED}2")
    monkeypatch.setattr("sys.argv", ["train", "--token", f"{PLANTED}3", f"--x={PLANTED}2"])
    run_dir = tmp_path / "run"
    tracker = Tracker.open(run_dir, tags={"note": f"{PLANTED}2", "at": uri})
    tracker.params({"a": {"b": f"password={PLANTED}4"}, "uri": uri})
    report = tracker.close(20)
    assert "send them with" in report.message
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"http://127.0.0.1:9" in written
    for text in (written.decode(errors="replace"), report.message, caplog.text):
        assert PLANTED not in text
    # The password is found again in the environment.
    assert server_uri(tmp_path, "http://127.0.0.1:9") == uri


def test_a_folder_of_artifacts_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    store = LocalStore(tmp_path)
    run_id = store.create_run(store.experiment("mine"), "run", 0, {})
    (tmp_path / "mlartifacts").symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match="lead out of"):
        store.artifacts_of(run_id)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TRIGGER t AFTER INSERT ON metrics BEGIN DELETE FROM metrics; END",
        "CREATE VIEW v AS SELECT * FROM runs",
    ],
)
def test_a_store_with_triggers_is_not_opened(tmp_path: Path, made: str) -> None:
    LocalStore(tmp_path)
    with sqlite3.connect(local_store(tmp_path)) as database:
        database.execute(made)
    with pytest.raises(StoreAway, match=r"trigger|view"):
        LocalStore(tmp_path)


@pytest.mark.parametrize("pid", ["../../etc", "self", None, 1.5, True])
def test_the_number_of_a_process_is_no_path(pid: object) -> None:
    assert is_gone({**this_process(), "pid": pid}) in (None, True)


@pytest.mark.parametrize(
    "name", ["a` ![x](http://host/p.png) `b", "<script>alert(1)</script>", "[x](javascript:1)"]
)
def test_no_name_becomes_an_image_or_a_link_in_a_note(name: str) -> None:
    rule = {"learned": "False", "policy": name}
    for text in (as_markdown(name), code_span(name), _name(rule)):
        shown = re.sub(r"`[^`]*`", "", text.replace(r"\`", ""))
        assert not re.search(r"(?<!\\)<|\]\(", shown)


def test_a_closed_output_ends_nothing(tmp_path: Path) -> None:
    line = f"{sys.executable} -m tune_jobs.cli train --show presets >&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
