"""Job logs that come with the package, by name."""

from pathlib import Path

FOLDER = Path(__file__).parent / "logs"


def shipped_logs() -> dict[str, Path]:
    """The logs by their names, which stand for their files where a log is asked for."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.swf"))}


def is_shipped(path: Path | str) -> bool:
    """Whether a path is the name of a shipped log; a file of that name comes first."""
    return str(path) in shipped_logs() and not Path(path).exists()


def find_log(path: Path | str) -> Path:
    """The file that a path or the name of a shipped log means."""
    return shipped_logs()[str(path)] if is_shipped(path) else Path(path)
