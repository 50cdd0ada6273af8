"""Calls on runs: send, make anew, edit, resume, stop, look."""

import asyncio
from typing import Annotated

import msgspec

from dialoom.base.text import one_line
from dialoom.dialog import Center
from dialoom.server.choice import Choice, Manner, Policy
from dialoom.server.files import FileStore, StoredFile
from dialoom.server.model_names import find_model
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.run_tale import RunView
from dialoom.server.talks import Talks

MAX_TEXT = 1_000_000
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]


class NamedFile(msgspec.Struct, frozen=True):
    """An uploaded file, and its name in this message: the same bytes may be uploaded under another."""

    id: str
    name: Annotated[str, msgspec.Meta(max_length=255)]


class NewMessage(msgspec.Struct, frozen=True):
    """What a person says; the same `key` again says nothing again.

    `parent` is the index of the entry it is said behind: another than the newest begins a branch, -1 an empty
    one. `model` is who answers from now on, as `/api/v1/me` or `/v1/models` name it. `policy` says what
    happens while an answer is under way: `reject` refuses, `queue` says it afterwards and is answered then,
    `interrupt` stops the answer.
    """

    text: _Text
    attachments: Annotated[list[str | NamedFile], msgspec.Meta(max_length=20)] = []
    key: Annotated[str, msgspec.Meta(max_length=200)] = ""
    parent: Annotated[int, msgspec.Meta(ge=-1, le=2**31)] | None = None
    model: Annotated[str, msgspec.Meta(max_length=300)] = ""
    policy: Policy = "reject"


class Said(msgspec.Struct, frozen=True, rename="camel"):
    """Where the message stands, the run that answers it, and the conversation, which may be a branch."""

    index: int
    run_id: str
    conversation_id: str


class Begun(msgspec.Struct, frozen=True, rename="camel"):
    """A run, and the conversation it is in."""

    conversation_id: str
    run_id: str


class Edit(msgspec.Struct, frozen=True):
    """Other words for the user's message at `index`."""

    index: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    text: _Text


class Empty(msgspec.Struct, frozen=True):
    """An empty object."""


class Runs:
    """Serves the runs of conversations."""

    def __init__(self, talks: Talks, files: FileStore, center: Center) -> None:
        self._talks = talks
        self._center = center
        self._files = files

    def routes(self) -> list[AnyRoute]:
        one, run = "/api/v1/conversations/{id}", "/api/v1/runs/{id}"
        refusals = (409,)
        return [
            Route(
                "POST", one + "/messages", self.send, body=NewMessage, answer=Said, status=202,
                refusals=refusals, summary="Say something and have it answered; the answer comes as events",
            ),
            Route(
                "POST", one + "/regenerate", self.again, body=Empty, answer=Begun, status=202,
                refusals=refusals, summary="Have the newest answer made anew, in a branch",
            ),
            Route(
                "POST", one + "/edit", self.edit, body=Edit, answer=Begun, status=202, refusals=refusals,
                summary="Say something else in place of a message, in a branch",
            ),
            Route(
                "POST", one + "/resume", self.resume, body=Empty, answer=Begun, status=202, refusals=refusals,
                summary="Go on with what a restart cut short",
            ),
            Route("GET", run, self.show, answer=RunView, summary="Show a run"),
            Route(
                "POST", run + "/cancel", self.cancel, body=Empty, answer=RunView, status=202,
                summary="Stop a run; what it said is kept",
            ),
            Route(
                "POST", run + "/resume", self.resume_run, body=Empty, answer=Begun, status=202,
                refusals=refusals, summary="Go on with a run that failed",
            ),
        ]  # fmt: skip

    async def send(self, call: Call[Nothing, NewMessage]) -> Said:
        said = call.body
        wanted = dict.fromkeys(said.attachments)  # the same file twice is one
        files = [await asyncio.to_thread(self._find, each) for each in wanted]
        noted = [msgspec.to_builtins(each) for each in files]
        text = "\n".join([said.text, *(f"[file: {each.name}]" for each in files)])
        choice = Choice()
        if said.model:
            named = await find_model(self._center, said.model)
            choice = Choice(provider=named.provider.id, model=named.model)
        manner = Manner(parent=said.parent, choice=choice, policy=said.policy)
        sent = await self._talks.send(call.id(), text, attachments=noted, key=said.key, manner=manner)
        return Said(*sent)

    def _find(self, wanted: str | NamedFile) -> StoredFile:
        if isinstance(wanted, str):
            return self._files.find(wanted)
        found = self._files.find(wanted.id)
        return msgspec.structs.replace(found, name=one_line(wanted.name, 255) or found.name)

    async def again(self, call: Call[Nothing, Empty]) -> Begun:
        return Begun(*await self._talks.again(call.id()))

    async def edit(self, call: Call[Nothing, Edit]) -> Begun:
        return Begun(*await self._talks.edit(call.id(), call.body.index, call.body.text))

    async def resume(self, call: Call[Nothing, Empty]) -> Begun:
        return Begun(call.id(), await self._talks.resume(call.id()))

    async def show(self, call: Call[Nothing, Nothing]) -> RunView:
        return self._talks.runs.find(call.id())

    async def cancel(self, call: Call[Nothing, Empty]) -> RunView:
        return await self._talks.cancel(call.id())

    async def resume_run(self, call: Call[Nothing, Empty]) -> Begun:
        conversation_id = self._talks.runs.find(call.id()).conversation_id
        return Begun(conversation_id, await self._talks.resume(conversation_id))
