"""The reader processes of this program: a few, long-lived, replaced as soon as one misbehaves."""

import atexit
import os
import signal
import sys
from importlib.util import find_spec
from threading import Condition, Lock

import msgspec

from dialoom.rag.errors import LoadError
from dialoom.rag.extract.child import ChildEndedError, ReaderProcess, ReplyTooLongError
from dialoom.rag.extract.job import Done, Failed, Job, Ready, decode_reply, encode_job
from dialoom.rag.loaders.loader import IsolatedFormat, Loaded, Source
from dialoom.rag.types import Document

_MOST_PROCESSES = max(2, min(4, os.cpu_count() or 2))
_MOST_JOBS = 256  # a new process forgets what a parser has leaked, or kept
_START_SECONDS = 60.0
_GRACE_SECONDS = 1.0  # a process that notices its time is over by itself says so in better words
_BYTES_PER_CHARACTER = 4
_BESIDE_TEXT = 16_000_000


class ExtractorPool:
    """Reads files in child processes with limits on time, memory and output. Any thread may call it."""

    def __init__(self, most: int = _MOST_PROCESSES) -> None:
        self._most = most
        self._changed = Condition()
        self._idle: list[ReaderProcess] = []
        self._busy: set[ReaderProcess] = set()

    def extract(self, kind: IsolatedFormat, source: Source) -> Loaded:
        """Read one file, as its loader would here. Raises `LoadError`; no content can make it do worse."""
        source.check_time()
        try:
            child = self._take(source.options.extractor_memory_mb)
        except OSError as error:  # the system is short of memory, processes or open files
            raise _not_started(source) from error
        keep = False
        try:
            reply = _ask(child, kind, source)
            # one that ran short of memory ends, and the next file should not be the one to notice
            keep = isinstance(reply, Loaded) or reply.code != "limit"
        finally:
            self._give_back(child, keep=keep)
        if isinstance(reply, Failed):
            raise LoadError(reply.code, reply.message, source=source.id)
        return reply

    def processes(self) -> list[int]:
        """The ids of the processes there are."""
        with self._changed:
            return [child.pid for child in (*self._idle, *self._busy)]

    def close(self) -> None:
        """End the idle processes and kill the others. The pool may be used again."""
        with self._changed:
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for child in idle:
            child.retire()
        for child in busy:
            child.kill()

    def forget(self) -> None:
        """Let go of processes that belong to another one, after a fork."""
        for child in (*self._idle, *self._busy):
            child.forget()

    def _take(self, memory_mb: int) -> ReaderProcess:
        """An idle process with these limits, or a new one; waits while as many as allowed are busy."""
        with self._changed:
            while len(self._busy) >= self._most:
                self._changed.wait()
            child = next((each for each in self._idle if each.memory_mb == memory_mb), None)
            spare = child
            if child is not None:
                self._idle.remove(child)
            elif len(self._idle) + len(self._busy) >= self._most:
                spare = self._idle.pop(0)
            if child is None or not child.is_alive():
                child = ReaderProcess(memory_mb)
            self._busy.add(child)
        if spare is not None and spare is not child:
            spare.retire()
        return child

    def _give_back(self, child: ReaderProcess, *, keep: bool) -> None:
        child.jobs += 1
        fit = keep and child.jobs < _MOST_JOBS and child.is_alive()
        if not fit:
            child.end()
        with self._changed:
            self._busy.discard(child)
            if fit:
                self._idle.append(child)
            self._changed.notify()


def shared_pool() -> ExtractorPool | None:
    """The pool of this process; None where the system has no limits to set or no Python to start."""
    if find_spec("resource") is None or not sys.executable:
        return None
    return _SHARED.get()


def end_readers() -> None:
    """End the readers of this program, on its way out: nobody waits for what they may still be reading."""
    if pool := shared_pool():
        pool.close()


class _Shared:
    """One pool per process, made when it is first asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ExtractorPool | None = None

    def get(self) -> ExtractorPool:
        with self._lock:
            if self._pool is None:
                self._pool = ExtractorPool()
            return self._pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def forget(self) -> None:
        pool, self._pool, self._lock = self._pool, None, Lock()
        if pool is not None:
            pool.forget()


_SHARED = _Shared()
atexit.register(_SHARED.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SHARED.forget)


def _ask(child: ReaderProcess, kind: IsolatedFormat, source: Source) -> Loaded | Failed:
    """What the process makes of the file. After a `LoadError` from here it is of no more use."""
    options = source.options
    elapsed = source.clock.monotonic() - source.started
    job = Job(
        format=kind,
        id=source.id,
        charset=source.charset,
        html_mode=options.html_mode,
        timeout=options.extractor_timeout,
        elapsed=elapsed,
        max_extracted_bytes=options.max_extracted_bytes,
    )
    most = options.max_extracted_bytes * _BYTES_PER_CHARACTER + _BESIDE_TEXT
    try:
        if child.jobs == 0:
            _start(child, source)
        seconds = max(options.extractor_timeout - elapsed, 0.0) + _GRACE_SECONDS
        reply = decode_reply(child.ask([encode_job(job), source.data], seconds=seconds, most=most))
    except TimeoutError as error:
        raise source.too_slow() from error
    except ReplyTooLongError as error:
        raise source.too_much() from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise source.corrupt("made its reader answer nonsense") from error
    except ChildEndedError as error:
        raise _ended(error, source) from error
    match reply:
        case Done():
            return _checked(reply.loaded, source)
        case Failed():
            return reply
        case Ready():
            raise source.corrupt("made its reader answer nonsense")


def _start(child: ReaderProcess, source: Source) -> None:
    """Wait until a new process is ready; its start is not the file's time."""
    try:
        child.ask([], seconds=_START_SECONDS, most=1_000)
    except (TimeoutError, ChildEndedError, ReplyTooLongError) as error:
        raise _not_started(source) from error


def _not_started(source: Source) -> LoadError:
    message = f"no process could be started to read {source.id}; see that {sys.executable} has dialoom"
    return LoadError("unreadable", message, source=source.id)


def _ended(error: ChildEndedError, source: Source) -> LoadError:
    if error.signal == signal.SIGXCPU:
        return source.too_slow()
    return source.corrupt(
        f"made its reader crash ({error.name}): it is damaged, "
        f"or needs more than {source.options.extractor_memory_mb} MB of memory (extractor_memory_mb)"
    )


def _checked(loaded: Loaded, source: Source) -> Loaded:
    """What a process answered, which may no longer have been its own master."""
    source.check_extracted(sum(len(document.text) for document in loaded.documents))
    if loaded.source != source.id or not all(_is_sound(document, source) for document in loaded.documents):
        raise source.corrupt("made its reader answer nonsense")
    return loaded


def _is_sound(document: Document, source: Source) -> bool:
    end = len(document.text)
    spans = (*document.pages, *document.rows)
    return (
        document.id == source.id
        and all(0 <= span.start <= span.end <= end for span in spans)
        and all(0 <= heading.start <= end and 1 <= heading.level <= 6 for heading in document.headings)
    )
