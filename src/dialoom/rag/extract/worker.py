"""The reader process: `python -m dialoom.rag.extract.worker MEMORY_MB`, jobs on stdin, replies on stdout."""

import os
import sys
from collections.abc import Callable
from typing import BinaryIO, cast

from dialoom.base.clock import SYSTEM_CLOCK
from dialoom.base.text import one_line
from dialoom.rag.errors import LoadError, LoadErrorCode
from dialoom.rag.extract.job import (
    Done,
    Failed,
    Job,
    Ready,
    decode_job,
    encode_reply,
    read_frame,
    write_frame,
)
from dialoom.rag.extract.limits import allow_cpu, set_limits
from dialoom.rag.loaders.loader import DocumentLoader, IsolatedFormat, LoadOptions, Source
from dialoom.rag.loaders.page import HtmlLoader
from dialoom.rag.loaders.pdf import PdfLoader
from dialoom.rag.loaders.word import DocxLoader

_LOADERS: dict[IsolatedFormat, DocumentLoader] = {
    "pdf": PdfLoader(),
    "docx": DocxLoader(),
    "html": HtmlLoader(),
}


def main() -> None:
    """Read files until the parent closes the pipe or is gone."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the replies
    set_limits(int(sys.argv[1]))
    try:
        serve(sys.stdin.buffer, replies, allow_cpu)
    except BrokenPipeError:
        os._exit(0)  # nobody reads any more; closing the streams would only fail once more


def serve(jobs: BinaryIO, replies: BinaryIO, allow: Callable[[float], None]) -> None:
    """Answer each job with one reply; `allow` is told the seconds that the next one may take."""
    write_frame(replies, encode_reply(Ready()))
    while (head := read_frame(jobs)) is not None and (data := read_frame(jobs)) is not None:
        job = decode_job(head)
        allow(job.timeout - job.elapsed)
        try:
            write_frame(replies, _read(job, data))
        except MemoryError:  # what was freed may be too little for the next one: let a new process do it
            message = f"reading {job.id} took more memory than allowed; split it or raise extractor_memory_mb"
            write_frame(replies, encode_reply(Failed("limit", message)))
            return


def _read(job: Job, data: bytes) -> bytes:
    options = LoadOptions(
        extractor_timeout=job.timeout, max_extracted_bytes=job.max_extracted_bytes, html_mode=job.html_mode
    )
    source = Source(
        id=job.id,
        data=data,
        options=options,
        started=SYSTEM_CLOCK.monotonic() - job.elapsed,
        charset=job.charset,
    )
    try:
        return encode_reply(Done(_LOADERS[job.format].load(source)))
    except LoadError as error:
        code = cast("LoadErrorCode", error.code)  # by the contract of LoadError
        return encode_reply(Failed(code, str(error)))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - seam: parsers fail in their own ways
        why = one_line(str(error), 120) or type(error).__name__
        return encode_reply(Failed("corrupt", f"{job.id} cannot be read ({why}); replace the file"))


if __name__ == "__main__":
    main()
