"""How a command ends: one line on stderr for people, one exit code for scripts."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from threading import current_thread, main_thread

from cyclopts import CycloptsError, UnusedCliTokensError

from dialoom.base.errors import DialoomError, MissingExtraError, StoreError, UsageError
from dialoom.base.text import one_line

MESSAGE_LIMIT = 500


class ExitCode(IntEnum):
    """The documented exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_MODEL = 3
    NO_DOCUMENTS = 4
    INDEX = 5
    MODEL = 6
    INTERRUPTED = 130


class NoModelError(DialoomError):
    """No model could be found and the caller does not want to go without one."""

    code = "no_model"


def _codes() -> tuple[tuple[type[DialoomError], ExitCode], ...]:
    """Return error classes and their codes; the first that fits wins, so the narrow ones stand first.

    Imported when something failed: what models and documents need is not loaded for every command.
    """
    from dialoom.llm.errors import ProviderError
    from dialoom.rag.errors import LoadError

    return (
        (NoModelError, ExitCode.NO_MODEL),
        (LoadError, ExitCode.NO_DOCUMENTS),
        (StoreError, ExitCode.INDEX),
        (ProviderError, ExitCode.MODEL),
        (UsageError, ExitCode.USAGE),
        (MissingExtraError, ExitCode.USAGE),
    )


def exit_code_for(error: DialoomError) -> ExitCode:
    """Return the exit code that tells a script which kind of thing went wrong."""
    return next((code for kind, code in _codes() if isinstance(error, kind)), ExitCode.FAILED)


def exit_code_named(code: str) -> ExitCode:
    """Return the exit code for the `code` of an error that only its word is left of."""
    return next((exit_code for kind, exit_code in _codes() if code in _words(kind)), ExitCode.FAILED)


def complain(message: str) -> None:
    """Print one line on stderr, whatever `message` holds."""
    print(f"dialoom: {one_line(message, MESSAGE_LIMIT)}", file=sys.stderr, flush=True)


def check_stdout() -> None:
    """Raise `OSError` when stdout is closed: what serves on it should know before its first answer."""
    os.write(sys.stdout.fileno(), b"")


def run_command(command: Callable[[], ExitCode | None]) -> ExitCode:  # noqa: PLR0911 - one way out for each end
    """Run `command`; any failure becomes one line on stderr and its exit code.

    A traceback is shown only when `DIALOOM_DEBUG` is set: it is for those who mend dialoom.
    """
    try:
        code = command() or ExitCode.OK
        sys.stdout.flush()  # what cannot be written has to be known before the code is
        return code
    except DialoomError as error:
        complain(str(error))
        return exit_code_for(error)
    except CycloptsError as error:
        complain(_usage(error))
        return ExitCode.USAGE
    except KeyboardInterrupt:
        _close_in_peace()
        complain("interrupted; what was finished before is kept")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.OK  # the reader of our output has left (`dialoom ask … | head`), as it may
    except OSError as error:
        complain(_unwritten(error))
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - seam: the last one before the person at the terminal
        if os.environ.get("DIALOOM_DEBUG"):
            traceback.print_exc()
        complain(f"internal error: {type(error).__name__}: {error}; set DIALOOM_DEBUG=1 to see where")
        return ExitCode.FAILED
    finally:
        _give_up_what_cannot_be_written()


def _usage(error: CycloptsError) -> str:
    """Return what is wrong with the words of a command, and whose help says more."""
    own = " ".join(("dialoom", *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        extra = " ".join(error.unused_tokens or ())
        what = "put the question in quotes" if own == "dialoom ask" else f"see {own} --help"
        return f"{extra!r} is one word too many for {own}; {what}"
    return f"{error} See {own} --help."


def _words(kind: type[DialoomError]) -> set[str]:
    return {kind.code}.union(*map(_words, kind.__subclasses__()))


def _close_in_peace() -> None:
    """Let no second Ctrl-C interrupt what closes files and children on the way out."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unwritten(error: OSError) -> str:
    if error.errno == errno.EBADF and error.filename is None:
        return "stdout is closed, so nobody can read this; open it, or send it to a file"
    return f"cannot read or write {error.filename or 'a standard stream'}: {error.strerror or error}"


def _give_up_what_cannot_be_written() -> None:
    """Leave nothing in the buffer of stdout that the end of the process would stumble over."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
