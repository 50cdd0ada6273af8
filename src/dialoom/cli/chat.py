"""`dialoom chat`: a conversation in the terminal, with a model or with documents."""

import asyncio
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from dialoom.base.text import printable
from dialoom.cli.answer import Answer, Answerer, FromDocuments, FromModel
from dialoom.cli.ask import show, source_line
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.interrupt import stop_on_interrupt
from dialoom.cli.knowledge import bring_in, check_knowledge, open_store, tell
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import counted, say
from dialoom.graph import RunControl
from dialoom.llm import Message

PROMPT = "> "
MAX_LINES_REMEMBERED = 1000
HELP = """\
/help      this list
/sources   the passages that the last answer cites, in full
/history   the conversation so far
/new       begin a new conversation
/quit      leave; Ctrl-D does the same
Ctrl-C     stop the answer; what was said so far is kept\
"""


def chat(knowledge: KnowledgeFlags, model: ModelFlags) -> ExitCode:
    """Talk until the person leaves. With `--docs` or an index at hand, answers come from the documents."""
    if knowledge.docs is not None:
        check_knowledge(knowledge)
    with asyncio.Runner() as runner, ExitStack() as stack:
        opening = open_model(model)
        opened = runner.run(opening.__aenter__())
        stack.callback(lambda: runner.run(opening.__aexit__(None, None, None)))
        answerer = _open_answerer(runner, stack, knowledge, opened)
        announce(opened.choice)
        stack.enter_context(_RememberedLines(knowledge.index.with_name("chat_history")))
        say("/help tells what you can do here")
        _Chat(runner, answerer).talk()
    return ExitCode.OK


def _open_answerer(
    runner: asyncio.Runner, stack: ExitStack, knowledge: KnowledgeFlags, opened: OpenModel
) -> Answerer:
    if knowledge.docs is None and not knowledge.index.exists():
        return FromModel(opened)
    store = stack.enter_context(open_store(knowledge))
    if knowledge.docs is not None:
        tell(runner.run(bring_in(knowledge.docs, store)), knowledge.docs, always=False)
    say(
        f"answers come from {counted(len(store), 'passage')} of {counted(len(store.documents()), 'document')}"
    )
    return FromDocuments(store, opened, knowledge)


class _Chat:
    """The conversation: lines in, answers and commands out."""

    def __init__(self, runner: asyncio.Runner, answerer: Answerer) -> None:
        self._runner = runner
        self._answerer = answerer
        self._history: tuple[Message, ...] = ()
        self._last: Answer | None = None

    def talk(self) -> None:
        """Take line after line. Ctrl-C between two answers only says how to leave."""
        while True:
            try:
                line = _read_line()
                if line is None or not self._take(line.strip()):
                    return
            except KeyboardInterrupt:
                say("\nCtrl-D or /quit leaves")

    def _take(self, line: str) -> bool:
        """Do what a line says; whether the conversation goes on."""
        match line:
            case "":
                pass
            case "/quit" | "/exit":
                return False
            case "/help":
                print(HELP)
            case "/new":
                self._history, self._last = (), None
                print("a new conversation")
            case "/history":
                self._print_history()
            case "/sources":
                self._print_sources()
            case command if command.startswith("/"):
                print(f"{command.split()[0]} is not known here; /help lists what is")
            case question:
                self._answer(question)
        sys.stdout.flush()
        return True

    def _answer(self, question: str) -> None:
        control = RunControl()
        with stop_on_interrupt(control):
            answering = self._answerer.answer(question, self._history, control=control, show=show)
            answer = self._runner.run(answering)
        self._history, self._last = answer.history, answer
        print()
        if answer.error:
            complain(answer.error)
        elif answer.stop_reason != "finished":
            say("(stopped)")
        for source in answer.cited_sources():
            print(f"  {source_line(source)}")
        print()

    def _print_history(self) -> None:
        for message in self._history:
            print(f"{'you' if message.role == 'user' else 'dialoom'}: {printable(message.text)}")
        if not self._history:
            print("nothing was said yet")

    def _print_sources(self) -> None:
        cited = self._last.cited_sources() if self._last else []
        for source in cited:
            print(f"{source_line(source)}\n{printable(source.text)}\n")
        if not cited:
            print("the last answer cites nothing")


class _RememberedLines:
    """The lines a person typed, to be had again with the arrow keys, in this chat and in the next."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        if not sys.stdin.isatty():
            return
        with suppress(ImportError, OSError):
            import readline

            readline.set_history_length(MAX_LINES_REMEMBERED)
            readline.read_history_file(self._path)

    def __exit__(self, *_: object) -> None:
        if not sys.stdin.isatty() or not self._path.parent.is_dir():
            return
        with suppress(ImportError, OSError):
            import readline

            readline.write_history_file(self._path)
            self._path.chmod(0o600)


def _read_line() -> str | None:
    """Return the next line, None when there will be none."""
    try:
        return input(PROMPT if sys.stdin.isatty() else "")
    except EOFError:
        return None
