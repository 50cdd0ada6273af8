"""`dialoom chat`: a conversation in the terminal, kept on disk, with a model or with documents."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import TypeVar

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line, printable
from dialoom.cli.answer import Answer, FromDocuments
from dialoom.cli.ask import source_line
from dialoom.cli.chat_cards import ask_card
from dialoom.cli.chat_center import (
    CHAT_TOOLS,
    ChatFlags,
    ChatSkills,
    center_of,
    is_kept,
    open_dialog,
    open_stores,
    use_model,
)
from dialoom.cli.chat_claim import ConversationClaim
from dialoom.cli.chat_lines import RememberedLines, path_of, read_line
from dialoom.cli.chat_talk import answer_from_documents, follow, history_lines
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.interrupt import stop_on_interrupt
from dialoom.cli.knowledge import bring_in, check_knowledge, has_knowledge, held_in, open_store, tell
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import counted, say
from dialoom.conversation import ExportFormat, TextEntry, export_conversation
from dialoom.conversation.cards import InvalidAnswersError
from dialoom.dialog import Center, Dialog, DialogResult, RunHandle, Stores
from dialoom.graph import RunControl
from dialoom.rag import Embedder

T = TypeVar("T")

HELP = """\
/help             this list
/sources          the passages that the last answer cites, in full
/history          the conversation so far
/new              begin a new conversation
/regenerate       answer again, in a branch; the old answer stays where it is
/edit [N] TEXT    say the last thing, or your Nth, in other words, in a branch
/branch           go on in a copy of this conversation
/model NAME       have another model of this server answer
/tools            the tools the model may call
/skills           the skills there are; /skill NAME switches one on, /skill trust NAME trusts it
/prompt NAME x=y  say a prompt with its variables
/export FILE      write the conversation to a .md, .json or .yaml file
//TEXT            say a text that begins with a slash; a path such as /etc/hosts is said as it is
/quit             leave; Ctrl-D does the same; dialoom chat --resume goes on
Ctrl-C            stop the answer; what was said so far is kept\
"""
EXPORTS: dict[str, ExportFormat] = {".md": "md", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}


def chat(flags: ChatFlags, knowledge: KnowledgeFlags, model: ModelFlags) -> ExitCode:
    """Talk until the person leaves. With `--docs` or an index at hand, answers come from the documents."""
    if knowledge.docs is not None and flags.calls_tools:
        raise UsageError("documents answer without tools; leave --docs out, or --tool and --server")
    folder = knowledge.index.parent
    with asyncio.Runner() as runner, ExitStack() as stack:
        if knowledge.docs is not None:
            runner.run(check_knowledge(knowledge))
        opened = _entered(runner, stack, open_model(model))
        embedder = _entered(runner, stack, open_embedder(model.config))
        documents = None
        if not _leaves_documents_aside(knowledge, flags):
            documents = _open_documents(runner, stack, knowledge, opened=opened, embedder=embedder)
        claim = stack.enter_context(ConversationClaim(folder))
        stores = stack.enter_context(open_stores(folder))
        center = _entered(runner, stack, center_of(stores, opened, flags))
        dialog = runner.run(open_dialog(center, flags, claim))
        announce(opened.choice)
        if flags.conversation:
            say(f"going on with {dialog.id}")
        stack.enter_context(RememberedLines(folder / "chat_history"))
        say("/help tells what you can do here")
        talk = _Chat(runner, center, stores, opened=opened, documents=documents, claim=claim)
        talk.talk(dialog)
    return ExitCode.OK


def _entered(runner: asyncio.Runner, stack: ExitStack, opening: AbstractAsyncContextManager[T]) -> T:
    """Enter a context on the runner's loop, and leave it there with `stack`."""
    entered = runner.run(opening.__aenter__())
    stack.callback(lambda: runner.run(opening.__aexit__(None, None, None)))
    return entered


def _leaves_documents_aside(knowledge: KnowledgeFlags, flags: ChatFlags) -> bool:
    """Tell, here and to the person, whether the model answers although there is an index."""
    is_aside = flags.calls_tools and knowledge.index.exists()
    if is_aside:
        say(f"with tools the model answers, and not the documents of {knowledge.index}")
    return is_aside


def _open_documents(
    runner: asyncio.Runner,
    stack: ExitStack,
    knowledge: KnowledgeFlags,
    *,
    opened: OpenModel,
    embedder: Embedder,
) -> FromDocuments | None:
    if not has_knowledge(knowledge):
        return None
    store = stack.enter_context(open_store(knowledge))
    if knowledge.docs is not None:
        tell(runner.run(bring_in(knowledge.docs, store, embedder)), knowledge.docs, always=False)
    say(f"answers come from {held_in(store)}")
    return FromDocuments(store, opened, knowledge, embedder)


class _Chat:
    """The conversation: lines in, answers and commands out."""

    def __init__(
        self,
        runner: asyncio.Runner,
        center: Center,
        stores: Stores,
        *,
        opened: OpenModel,
        documents: FromDocuments | None,
        claim: ConversationClaim,
    ) -> None:
        self._runner = runner
        self._center = center
        self._stores = stores
        self._opened = opened
        self._documents = documents
        self._claim = claim
        self._skills = ChatSkills(Path.cwd(), Path.home())
        self._last: Answer | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: print(HELP),
            "/sources": self._print_sources,
            "/history": self._print_history,
            "/new": self._begin_anew,
            "/regenerate": self._regenerate,
            "/edit": self._edit,
            "/branch": self._branch,
            "/model": self._change_model,
            "/tools": self._print_tools,
            "/skills": self._print_skills,
            "/skill": self._switch_skill,
            "/prompt": self._say_prompt,
            "/export": self._export,
        }

    def talk(self, dialog: Dialog) -> None:
        """Take up what was left open, then line after line. Ctrl-C between two answers says how to leave."""
        self._turn_to(dialog)
        self._guarded(self._go_on)
        while True:
            try:
                line = read_line()
                if line is None or line.split()[:1] in (["/quit"], ["/exit"]):
                    self._guarded(self._forget_unsaid)
                    return
                self._guarded(lambda line=line: self._take(line.strip()))
            except KeyboardInterrupt:
                say("\nCtrl-D or /quit leaves")

    def _turn_to(self, dialog: Dialog) -> None:
        """Go on in `dialog`; it is not claimed by anybody else when it is new here."""
        self._claim.move(dialog.id)
        self._dialog = dialog
        self._is_new = not self._runner.run(is_kept(self._stores, dialog.id))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do `work`; what it cannot do is one line, and the conversation goes on."""
        try:
            work()
        except DialoomError as error:
            complain(str(error))
        sys.stdout.flush()

    def _take(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if not line.startswith("/") or "/" in name[1:]:  # words, or a path that they begin with
            if line:
                self._answer(line.removeprefix("/") if line.startswith("//") else line)
            return
        command = self._commands.get(name)
        if command is None:
            print(f"{name} is not known here; /help lists what is, and /{name} says it")
        else:
            command(rest.strip())

    def _go_on(self) -> None:
        """Take up what a conversation was left with: a question of its run, or words nobody answered."""
        dialog = self._dialog
        if not dialog.message_count:
            return
        self._print_history("")
        if dialog.waiting:
            self._ask(dialog.waiting[0])
        elif dialog.is_unfinished:
            say("(going on where it stopped)")
            self._take_up()

    def _take_up(self) -> None:
        last = self._dialog.last_message
        if self._documents is None or not isinstance(last, TextEntry):
            self._run(self._dialog.resume)
        else:
            self._dialog.truncate_to(self._dialog.message_count - 1)
            self._answer(last.content)

    def _answer(self, question: str) -> None:
        if self._documents is None:
            self._run(lambda: self._dialog.send(question))
            return
        control = RunControl()
        with stop_on_interrupt(control):
            answering = answer_from_documents(self._dialog, self._documents, question, scope=control)
            answer = self._last = self._runner.run(answering)
        print()
        if answer.error:
            complain(answer.error)
        elif answer.stop_reason != "finished":
            say("(stopped)")
        for source in answer.cited_sources():
            print(f"  {source_line(source)}")
        print()

    def _run(self, start: Callable[[], RunHandle]) -> None:
        """Start a run, show it, and bring before the person what it asks."""
        scope = CancelScope()

        async def carry() -> DialogResult:
            return await follow(self._dialog, start(), scope)

        with stop_on_interrupt(scope):
            result = self._runner.run(carry())
        if result.waiting:
            self._ask(result.waiting[0])

    def _ask(self, card_id: str) -> None:
        answers = ask_card(self._dialog, card_id, read_line)
        try:
            if answers is not None:
                self._run(lambda: self._dialog.answer(card_id, *answers))
                return
        except InvalidAnswersError as error:  # answers that are right one by one, and not together
            complain(str(error))
        say("it waits; dialoom chat --resume asks again")

    def _print_history(self, _: str) -> None:
        self._runner.run(self._dialog.load())
        print(*(history_lines(self._dialog.messages) or ["nothing was said yet"]), sep="\n")

    def _print_sources(self, _: str) -> None:
        cited = self._last.cited_sources() if self._last else []
        for source in cited:
            print(f"{source_line(source)}\n{printable(source.text)}\n")
        if not cited:
            print("the last answer cites nothing")

    def _forget_unsaid(self) -> None:
        """Forget a conversation that was only set up here, and in which nothing was said."""
        if self._is_new and not self._dialog.message_count:
            self._runner.run(self._center.remove_dialog(self._dialog.id))

    def _begin_anew(self, _: str) -> None:
        self._forget_unsaid()
        self._turn_to(self._center.new_dialog())
        self._last = None
        print("a new conversation")

    def _check_said(self) -> None:
        if not self._dialog.message_count:
            raise UsageError("nothing was said yet; say something first")

    def _regenerate(self, _: str) -> None:
        mine = self._mine()
        if not mine:
            raise UsageError("nothing was asked yet; say something first")
        at, text = mine[-1]
        self._branch_at(at)
        self._answer(text)

    def _edit(self, rest: str) -> None:
        mine = self._mine()
        number, _, text = rest.partition(" ")
        if not number.isdecimal():
            number, text = str(len(mine)), rest
        if not text.strip():
            raise UsageError("say what to change: /edit TEXT for your last words, /edit N TEXT for the Nth")
        if not 1 <= int(number[:9]) <= len(mine):
            asked = counted(len(mine), "question")
            raise UsageError(f"you asked {asked}, so there is no question {number[:9]}; /history shows them")
        self._branch_at(mine[int(number) - 1][0])
        self._dialog.set_title(text)  # or a list would show two conversations of one name
        self._answer(text.strip())

    def _mine(self) -> list[tuple[int, str]]:
        """Return what the person said, each with its place."""
        self._runner.run(self._dialog.load())
        said = enumerate(self._dialog.messages)
        return [
            (at, entry.content) for at, entry in said if isinstance(entry, TextEntry) and entry.role == "user"
        ]

    def _branch(self, _: str) -> None:
        self._check_said()
        self._branch_at(None)

    def _branch_at(self, at: int | None) -> None:
        """Go on in a branch that ends before the message at `at`, and say how to get back."""
        before = self._dialog.id
        self._turn_to(self._runner.run(self._dialog.branch(at)))
        print(f"a branch; the other one is kept: dialoom chat --resume {before}")

    def _change_model(self, name: str) -> None:
        if name and self._opened.choice.mode == "offline":
            raise UsageError("no model is asked here; begin with dialoom chat --model provider:name")
        if name:
            use_model(self._center, self._opened, name)
            if self._documents is not None:
                self._documents.use_model(name)
        self._dialog.set_model_id(name or self._dialog.model_id)
        print(f"{one_line(self._dialog.model_id or self._opened.choice.label)} answers")

    def _print_tools(self, _: str) -> None:
        if self._documents is not None:
            print("no tools: the documents answer; dialoom chat --tool calculator has the model answer")
            return
        flags = {tool.name: f" (--tool {flag})" for flag, tool in CHAT_TOOLS.items() if flag != tool.name}
        named = (*self._center.tool_names, *self._dialog.tool_names)
        own = (f"{name}{flags.get(name, '')}" for name in named)
        served = (f"{one_line(server.name)} (server)" for server in self._center.mcps)
        print(*([*own, *served] or ["no tools; dialoom chat --tool calculator --tool clock"]), sep="\n")

    def _print_skills(self, _: str) -> None:
        found, on = self._skills.find(), self._dialog.active_skills
        for skill in found.skills:
            print(one_line(f"{skill.name}{' (on)' if skill.name in on else ''}: {skill.description}"))
        for skill in (each.skill for each in found.untrusted):
            print(one_line(f"{skill.name} (not trusted, in {skill.folder}): {skill.description}", 500))
        for warning in found.warnings:
            say(one_line(warning, 300))
        if not found.skills and not found.untrusted:
            print("no skills; put folders with a SKILL.md into .agents/skills")

    def _switch_skill(self, rest: str) -> None:
        words = rest.split()
        match words:
            case ["trust", name]:
                self._skills.trust(name)
                print(f"{name} is trusted as it is now; /skill {name} switches it on")
            case [name]:
                self._skills.switch_on(self._dialog, name)
                print(f"{name} is on")
            case _:
                raise UsageError("name a skill: /skill NAME, or /skill trust NAME; /skills lists them")

    def _say_prompt(self, rest: str) -> None:
        name, *pairs = rest.split()[:50] or [""]
        prompt = self._dialog.get_prompt(name)
        if prompt is None:
            known = ", ".join(each.name for each in self._center.prompts) or "none"
            raise UsageError(f"there is no prompt {one_line(name, 40)!r}; there are: {known}")
        filled = prompt.fill({key: value for key, _, value in (pair.partition("=") for pair in pairs)})
        if filled.missing:
            raise UsageError(
                f"prompt {name} needs {', '.join(filled.missing)}: /prompt {name} NAME=VALUE ..."
            )
        self._answer(filled.text)

    def _export(self, rest: str) -> None:
        path = path_of(rest)
        kind = EXPORTS.get(path.suffix.lower())
        if kind is None:
            raise UsageError(f"name a file that ends in {', '.join(EXPORTS)}: /export talk.md")
        self._check_said()
        self._runner.run(self._dialog.save())
        conversation = self._runner.run(self._stores.conversations.load(self._dialog.id))
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(export_conversation(conversation, kind))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}; name another file") from error
        print(f"written to {path}")
