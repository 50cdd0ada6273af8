"""The commands and their options, as people see them."""

import asyncio
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Literal

from cyclopts import App, Parameter

import dialoom
from dialoom.cli.exits import ExitCode, run_command
from dialoom.cli.flags import (
    DEFAULT_INDEX,
    NO_KNOWLEDGE_FLAGS,
    NO_MODEL_FLAGS,
    NO_SERVICE_FLAGS,
    KnowledgeFlags,
    ModelFlags,
    NamedPath,
    ServiceFlags,
    SettingsPath,
)
from dialoom.cli.mcp_app import mcp_app
from dialoom.cli.serve_flags import NO_SERVE_FLAGS, ServeFlags
from dialoom.cli.triage_flags import NO_TRIAGE_FLAGS, TriageFlags

HELP = """\
Ask your documents and get answers with citations: offline, or with any model.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no model found, 4 no readable document, 5 index not usable,
6 the model did not answer, 130 interrupted.
"""

app = App(
    name="dialoom",
    help=HELP,
    version=dialoom.__version__,
    result_action="return_value",
    default_parameter=Parameter(negative=()),
)
app.suppress_keyboard_interrupt = False  # who was interrupted, and how to go on, is for run_command to say
graph_app = App(name="graph", help="Look at graph definitions.")
app.command(graph_app)
app.command(mcp_app)


@app.command(name="ingest")
def ingest_command(
    docs: NamedPath,
    /,
    *,
    index: NamedPath = DEFAULT_INDEX,
    rebuild: bool = False,
    config: SettingsPath = None,
) -> ExitCode:
    """Bring a folder of documents into an index; run it again after they changed.

    Parameters
    ----------
    docs
        A folder, or one file: txt, md, html, pdf, docx, csv, jsonl, log.
    index
        The index file; made when it is not there.
    rebuild
        Empty the index first: for one that another embedder or chunker made.
    """
    from dialoom.cli.ingest import ingest

    return asyncio.run(ingest(docs, index, rebuild=rebuild, config=config))


@app.command(name="ask")
def ask_command(
    question: str,
    /,
    *,
    json: bool = False,
    knowledge: KnowledgeFlags = NO_KNOWLEDGE_FLAGS,
    model: ModelFlags = NO_MODEL_FLAGS,
) -> ExitCode:
    """Answer one question from your documents, with citations.

    Parameters
    ----------
    question
        What you want to know, in any language.
    json
        Print one JSON object instead of text.
    """
    from dialoom.cli.ask import ask

    return asyncio.run(ask(question, knowledge, model, as_json=json))


@app.command(name="chat", usage="Usage: dialoom chat [OPTIONS] [CONVERSATION]")
def chat_command(
    conversation: str = "",
    /,
    *,
    resume: bool = False,
    listed: Annotated[bool, Parameter(name="--list", negative="")] = False,
    tool: tuple[Literal["calculator", "clock"], ...] = (),
    server: tuple[str, ...] = (),
    knowledge: KnowledgeFlags = NO_KNOWLEDGE_FLAGS,
    model: ModelFlags = NO_MODEL_FLAGS,
) -> ExitCode:
    """Talk with a model, or with your documents, in the terminal. /help tells what it understands.

    Parameters
    ----------
    conversation
        The id of a conversation to go on with, also without --resume.
    resume
        Go on with the newest conversation, or the one that is named.
    listed
        List the conversations there are, newest first, and end.
    tool
        Let the model call this tool.
    server
        Let the model call the tools of this approved MCP server; dialoom mcp list shows them.
    """
    from dialoom.cli.chat import chat
    from dialoom.cli.chat_center import ChatFlags
    from dialoom.cli.chat_list import list_conversations

    if listed:
        return asyncio.run(list_conversations(knowledge.index.parent))
    flags = ChatFlags(conversation=conversation, resume=resume, tools=tool, servers=server)
    return chat(flags, knowledge, model)


@app.command(name="serve")
def serve_command(
    *,
    server: ServeFlags = NO_SERVE_FLAGS,
    knowledge: KnowledgeFlags = NO_KNOWLEDGE_FLAGS,
    model: ModelFlags = NO_MODEL_FLAGS,
) -> ExitCode:
    """Open the workbench: conversations, cards and knowledge in the browser, and the same over HTTP."""
    from dialoom.cli.serve import run_server

    return run_server(server, knowledge, model)


@app.command(name="doctor")
def doctor_command(*, profile: NamedPath | None = None, model: ModelFlags = NO_MODEL_FLAGS) -> ExitCode:
    """Find out what a model server can really do: streams, tools, schemas, token counts, context window.

    Parameters
    ----------
    profile
        Write what was found to this file, as JSON that dialoom.toml can name.
    """
    from dialoom.cli.doctor import doctor

    return asyncio.run(doctor(model, profile))


@app.command(name="bench", usage="Usage: dialoom bench [OPTIONS] [NAMES...]")
def bench_command(
    *names: str,
    json: bool = False,
    cases: tuple[NamedPath, ...] = (),
    client: str = "",
    most_cuts: int | None = None,
) -> ExitCode:
    """Measure dialoom against rivals and floors; from a clone of the repository.

    Parameters
    ----------
    names
        Which benches; all without a name.
    json
        Print one JSON object per bench.
    cases
        For the wire bench: a JSONL file of cases; may be given more than once.
    client
        For the wire bench: the command of a program to be scored instead of dialoom.
    most_cuts
        For the wire bench: how often one body is cut in two at most; at every byte if not given.
    """
    from dialoom.cli.bench import bench

    return bench(names, as_json=json, cases=cases, client=client, most_cuts=most_cuts)


@app.command(name="triage")
def triage_command(*, tickets: TriageFlags = NO_TRIAGE_FLAGS, model: ModelFlags = NO_MODEL_FLAGS) -> ExitCode:
    """Sort, rate and answer the tickets of a file from earlier cases, by a model or by rules."""
    from dialoom.cli.triage import triage

    return asyncio.run(triage(tickets, model))


@graph_app.command(name="show")
def graph_show_command(file: NamedPath, /) -> ExitCode:
    """Draw the graph that a JSON or YAML file defines, as a Mermaid flowchart.

    Parameters
    ----------
    file
        A graph definition: what Graph.to_dict() gives, in .json, .yaml or .yml.
    """
    from dialoom.cli.graph import show

    return show(file)


rag_app = App(name="rag", help="Knowledge as a process, and how good its answers are.")
app.command(rag_app)


@rag_app.default
def rag_command(
    *,
    knowledge: KnowledgeFlags = NO_KNOWLEDGE_FLAGS,
    model: ModelFlags = NO_MODEL_FLAGS,
    service: ServiceFlags = NO_SERVICE_FLAGS,
) -> ExitCode:
    """Serve questions over lines of JSON on stdin and stdout, for any front end to wrap."""
    from dialoom.cli.rag import rag_service

    return asyncio.run(rag_service(knowledge, model, service))


@rag_app.command(name="eval")
def rag_eval_command(
    questions: NamedPath,
    /,
    *,
    docs: NamedPath | None = None,
    tune: bool = False,
    chunk_size: int = 400,
    overlap: int = 60,
    config: SettingsPath = None,
) -> ExitCode:
    """Measure retrieval and citations on questions whose answers are known, with the vectors of the settings.

    Parameters
    ----------
    questions
        A file in the format of SQuAD (JSON), or one question per line (JSONL).
    docs
        The folder that JSONL questions are about.
    tune
        Also search weights for fusing words and vectors.
    chunk_size
        The most characters of a passage; passages of Chinese are good at 120 to 150.
    overlap
        How many of them a passage may share with the one before.
    """
    from dialoom.cli.rag import rag_eval
    from dialoom.rag import SlidingWindowChunker

    chunker = SlidingWindowChunker(chunk_size, overlap)
    return asyncio.run(rag_eval(questions, docs, tuned=tune, chunker=chunker, config=config))


def run(tokens: Sequence[str]) -> ExitCode:
    """Run the command that `tokens` name."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale without Chinese shows ?, and does not break off
    return run_command(lambda: app(tokens, exit_on_error=False, print_error=False))
