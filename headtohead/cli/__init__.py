"""The command h2h. Each command imports what it needs when it runs: help, lists and finished studies need no torch."""

from __future__ import annotations

import errno
import os
import sys

import typer

from headtohead.cli import hub, runs, studies, texts, tuning
from headtohead.spec import Mistake

app = typer.Typer(
    help="Change one thing in a transformer, and find out whether it mattered.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS = (
    studies.run,
    studies.verdict,
    studies.report,
    studies.list_,
    studies.show,
    tuning.tune,
    runs.audit,
    runs.score,
    runs.sample,
    hub.import_,
    hub.export,
    hub.push,
)
for command in COMMANDS:
    app.command(name=command.__name__.rstrip("_"))(command)
app.add_typer(texts.app, name="text")

# what a disk or a file system says, and no code of ours can help
OUTSIDE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENAMETOOLONG,
    errno.EIO,
    errno.EFBIG,
)


def main() -> None:
    """The command's entry: a user's mistake is one line and exit 2, a run that broke down one line and exit 1."""
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="h2h", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        told = _one_line(error)
        if told is None:
            raise
        code = 1 if type(error).__name__ == "Breakdown" else 2
        print(f"h2h: {' '.join(told.split())}", file=sys.stderr)
    if code == 130:
        more = "; the same command goes on from here" if "run" in sys.argv[1:2] else ""
        print(f"{chr(10) if sys.stderr.isatty() else ''}h2h: stopped{more}", file=sys.stderr)
    sys.exit(code)


def _one_line(error: Exception) -> str | None:
    """What a user is told of what went wrong; None where it is our bug."""
    if isinstance(error, Mistake) or type(error).__name__ == "Breakdown":
        return str(error)
    if hasattr(error, "format_message"):  # the command line did not parse
        command = getattr(getattr(error, "ctx", None), "command_path", "h2h")
        return f"{error.format_message().rstrip('.')}; see {command} --help"
    if isinstance(error, OSError) and error.errno in OUTSIDE:
        return f"{error.filename or 'the disk'}: {error.strerror}; mend that, and the same command goes on from here"
    return None
