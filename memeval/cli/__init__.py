"""The command line: `memeval COMMAND`. A command's module is imported when the command is called."""

from __future__ import annotations

import errno
import importlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import click

from memeval import __version__
from memeval.errors import InfrastructureError, MemevalError, nearest

COMMANDS = {
    "demo": "The whole flow on the bundled models; ends with a report.",
    "run": "Run a sweep of trials, or go on with it.",
    "retrieval": "Measure retrieval quality by embedder and prefix.",
    "report": "Make offline HTML reports of a run.",
    "show": "Show a run's tables, or one trial as a person reads it.",
    "rescore": "Judge again what a run kept, without a model, and say what moved.",
    "blame": "Say which stage broke the stories that failed.",
    "prompt": "Show the prompt as the model sees it, and what is wrong with it.",
    "doctor": "Say what is here, what is missing, and what mends it.",
    "scenarios": "List and check stories.",
    "designs": "List memory tool designs.",
    "memory": "Look into a memory store as a person.",
}
"""Every command and its one line of help. Each is `command` in the module `memeval.cli.<name>`."""

INTERRUPTED = 130
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


class Commands(click.Group):
    """Lists commands without importing them, and turns known errors into one sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"there is no command {cmd_name!r}{nearest(cmd_name, COMMANDS)}")
        command: click.Command = importlib.import_module(f"memeval.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table above; click's own would import every command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what is not a bug ends with a sentence on stderr."""
        try:
            return super().invoke(ctx)
        except MemevalError as error:
            _end(ctx, str(error), error.exit_code)
        except KeyboardInterrupt as stop:
            _end(ctx, str(stop) or "stopped before it was done", INTERRUPTED)
        except OSError as error:
            if error.errno not in _DISK:
                raise
            where = f"{error.filename}: " if error.filename else ""
            _end(ctx, f"{where}{error.strerror}", InfrastructureError.exit_code)


def _end(ctx: click.Context, sentence: str, code: int) -> None:
    click.echo(f"memeval: {sentence}", err=True)
    ctx.exit(code)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 something to mend (doctor, prompt); 2 bad input, or a bug in a design or"
    " embedder of your own; 4 server or disk; 130 interrupted.",
)
@click.version_option(__version__, prog_name="memeval", message="%(prog)s %(version)s")
def cli() -> None:
    """Which memory tool design should I give my local model, and does it really remember?"""


def main(args: Sequence[str] | None = None) -> None:
    """The entry point of the command `memeval`; ends the process with the command's exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A model may write what a terminal's encoding does not have: shown as `?`, never a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    cli.main(args=args, prog_name="memeval")
