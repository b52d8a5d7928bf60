"""Accounts for a private Slurm: slurmdbd with a database of its own, on a Unix socket.

Without them only root and the user of the controller may act on others' jobs.
"""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.slurm.private_slurm import PrivateSlurm, find_programs, free_ports, missing_programs

PROGRAMS = ("mariadb-install-db", "mariadbd", "slurmdbd", "sacctmgr", "sacct")

_CONFIG = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=lab
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
{plugins}
"""


def skip_without_accounts() -> None:
    """Skips a test where a Slurm with several users cannot be started, and says why."""
    if missing := [*missing_programs(), *missing_programs(PROGRAMS)]:
        pytest.skip(f"no {', '.join(missing)} on PATH; tests/slurm/README.md says how to get them")
    if os.geteuid():
        pytest.skip("needs root, to submit as several users")


class PrivateAccounts:
    """Accounts of a Slurm that runs. Use it in a ``with`` statement inside of the Slurm's.

    Args:
        slurm: whose accounts these are.
        settings: of slurm.conf, besides those of the database.
    """

    def __init__(self, slurm: PrivateSlurm, **settings: str) -> None:
        self._slurm, self._programs = slurm, find_programs(PROGRAMS)
        self._folder, self._settings = slurm.folder, settings
        self._environment = {
            **slurm.environment,
            "MYSQL_UNIX_PORT": str(slurm.folder / "sql.socket"),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._start_database()
            self._slurm.stop_controller()
            port = self._start_slurmdbd()
            self._slurm.configure(
                AccountingStorageType="accounting_storage/slurmdbd",
                AccountingStorageHost="127.0.0.1",
                AccountingStoragePort=str(port),
                AccountingStoragePass=f"{self._folder}/munge.socket",
                **self._settings,
            )
            self.run("add", "cluster", "lab")
            self._slurm.start_controller()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, *arguments: str, program: str = "sacctmgr") -> str:
        """What sacctmgr prints, or sacct."""
        now = ["-i"] if program == "sacctmgr" else []
        done = subprocess.run(
            [self._programs[program], *now, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        """Ends the database and its daemon."""
        with contextlib.suppress(KeyError):
            self._slurm.stop_controller()  # it writes to the database until its end
        for process in reversed(self._started):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_database(self) -> None:
        base = Path(self._programs["mariadbd"]).parents[1]
        where = ["--no-defaults", f"--basedir={base}", f"--datadir={self._folder}/sql"]
        who = f"--user={self._slurm.user}"
        plain = ["--skip-test-db", "--skip-name-resolve"]
        plain.append("--auth-root-authentication-method=normal")
        subprocess.run(
            [self._programs["mariadb-install-db"], *where, who, *plain],
            env=self._environment,
            capture_output=True,
            check=True,
            timeout=120,
        )
        socket = self._folder / "sql.socket"
        small = ["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=16M"]
        self._spawn(
            *("mariadbd", *where, who, f"--socket={socket}", "--skip-networking", *small),
            *(f"--pid-file={self._folder}/sql.pid", f"--lc-messages-dir={base}/share/mysql"),
        )
        self._slurm.wait_for(socket.exists, "a database")

    def _start_slurmdbd(self) -> int:
        (port,) = free_ports(1)
        config = self._folder / "slurmdbd.conf"
        config.touch(mode=0o600)
        config.write_text(
            _CONFIG.format(
                folder=self._folder,
                host=self._slurm.host,
                port=port,
                user=self._slurm.user,
                plugins=self._slurm.plugins,
            )
        )
        self._spawn("slurmdbd", "-D")
        self._slurm.wait_for(self._answers, "slurmdbd")
        return port

    def _answers(self) -> bool:
        log = self._folder / "slurmdbd.log"
        return log.exists() and " started" in log.read_text()

    def _spawn(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.out").open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    [self._programs[program], *arguments],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
