"""The tools, resources and prompts that the official conformance suite asks a server for, offered by ours.

Run `python -m tests.mcp.conformance_server`; it says its address on stderr when it can be used.
"""

import asyncio
import socket
import sys
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from dialoom.mcp.server import (
    Blank,
    Content,
    News,
    Prompt,
    PromptArgument,
    Resource,
    ResourceBytes,
    ResourceTemplate,
    ResourceText,
    Served,
    http_endpoint,
)
from dialoom.tools import Tool, ToolContext, ToolRegistry, ToolResult, tool

Fill: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Sequence[str | Content]]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
PICTURE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
CHOICES = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]


def shown(text: str, *blocks: Mapping[str, Any]) -> ToolResult:
    return ToolResult(content=text, card={"type": "mcp_result", "blocks": list(blocks)})


def embedded(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}


def form(message: str, required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    return {
        "message": message,
        "schema": {"type": "object", "properties": fields, "required": list(required)},
    }


@tool
def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ToolResult:
    """Show a picture."""
    return shown("", PICTURE)


@tool
def test_audio_content() -> ToolResult:
    """Play a sound."""
    return shown("", {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})


@tool
def test_embedded_resource() -> ToolResult:
    """Hand over a resource."""
    return shown(
        "", embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    )


@tool
def test_multiple_content_types() -> ToolResult:
    """Text, a picture and a resource."""
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return shown("Multiple content types test:", PICTURE, resource)


@tool
def test_error_handling() -> ToolResult:
    """Fail."""
    return ToolResult(content="This tool intentionally returns an error for testing", is_error=True)


@tool
async def test_tool_with_progress(ctx: ToolContext) -> str:
    """Take three steps."""
    for done in (1, 50, 100):
        ctx.emit({"progress": done, "total": 100})
        await asyncio.sleep(0.05)
    return "done"


@tool
def test_elicitation(ctx: ToolContext, message: str) -> str:
    """Ask for a name and an address."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    return f"User response: {ctx.ask(form(message, list(fields), **fields))}"


@tool
def test_elicitation_sep1034_defaults(ctx: ToolContext) -> str:
    """Ask with defaults."""
    status = {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}
    asked = form(
        "check the defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status=status,
        verified={"type": "boolean", "default": True},
    )
    return f"Elicitation completed: action=accept, content={ctx.ask(asked)}"


@tool
def test_elicitation_sep1330_enums(ctx: ToolContext) -> str:
    """Ask with every kind of choice."""
    options = ["option1", "option2", "option3"]
    asked = form(
        "choose",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": CHOICES},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": CHOICES}},
    )
    return f"Elicitation completed: action=accept, content={ctx.ask(asked)}"


@tool
def test_input_required_result_elicitation(ctx: ToolContext) -> str:
    """Ask for a name."""
    asked = form("What is your name?", ["name"], name={"type": "string"})
    return f"Hello, {ctx.ask(asked, key='user_name')['name']}!"


@tool
def test_input_required_result_request_state(ctx: ToolContext) -> str:
    """Ask, and know it when the state comes back."""
    state = ctx.once("state", lambda: "state-ok")
    ctx.ask(form("Please confirm", ["ok"], ok={"type": "boolean"}), key="confirm")
    return state


@tool
def test_input_required_result_tampered_state(ctx: ToolContext) -> str:
    """Ask, and trust no state that was changed."""
    ctx.ask(form("Please confirm", ["ok"], ok={"type": "boolean"}), key="confirm")
    return "ok"


@tool
def test_input_required_result_multi_round(ctx: ToolContext) -> str:
    """Ask twice."""
    name = ctx.ask(form("Step 1: What is your name?", ["name"], name={"type": "string"}), key="step1")
    colour = form("Step 2: What is your favorite color?", ["color"], color={"type": "string"})
    return f"{name['name']} likes {ctx.ask(colour, key='step2')['color']}"


@tool
def test_missing_capability(ctx: ToolContext) -> str:
    """Ask, whether the client can or not."""
    return str(ctx.ask("anybody there?"))


class HeaderTool(Tool):
    """A tool one of whose arguments is repeated in a header."""

    name = "test_custom_headers"
    description = "Takes a region"

    def parameters_schema(self) -> Mapping[str, object]:
        region = {"type": "string", "x-mcp-header": "Region"}
        return {"type": "object", "properties": {"region": region}, "required": ["region"]}

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return args


class SchemaTool(Tool):
    """A tool whose schema uses what JSON Schema 2020-12 has."""

    name = "json_schema_2020_12_tool"
    description = "Tool with JSON Schema 2020-12 features"

    def parameters_schema(self) -> Mapping[str, object]:
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        }

    def run(self, args: dict[str, object], ctx: ToolContext) -> object:
        return args


class Readable:
    """A text, a picture, and texts that are alike."""

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        text = Resource(uri="test://static-text", name="static text")
        picture = Resource(uri="test://static-binary", name="static picture", mime_type="image/png")
        return [text, picture][start : start + count]

    async def read(self, uri: str) -> Content | None:
        match uri.split("/"):
            case ["test:", "", "static-text"]:
                return ResourceText(uri=uri, text="This is the content of the static text resource.")
            case ["test:", "", "static-binary"]:
                return ResourceBytes(uri=uri, data=b64decode(PIXEL), mime_type="image/png")
            case ["test:", "", "template", number, "data"]:
                text = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
                return ResourceText(uri=uri, text=text, mime_type="application/json")
            case _:
                return None


async def simple(_: Mapping[str, str]) -> Sequence[str | Content]:
    return ["This is a simple prompt for testing."]


async def with_arguments(given: Mapping[str, str]) -> Sequence[str | Content]:
    return [f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"]


async def with_resource(given: Mapping[str, str]) -> Sequence[str | Content]:
    text = ResourceText(uri=given["resourceUri"], text="Embedded resource content for testing.")
    return [text, "Please process the embedded resource above."]


async def with_image(_: Mapping[str, str]) -> Sequence[str | Content]:
    picture = ResourceBytes(uri="test://static-binary", data=b64decode(PIXEL), mime_type="image/png")
    return [picture, "Please analyze the image above."]


def prompt(name: str, fill: Fill, *arguments: str) -> Prompt:
    blanks = tuple(PromptArgument(name=each, description=f"the {each}") for each in arguments)
    return Prompt(name=name, description="For a scenario.", arguments=blanks, fill=fill)


PROMPTS = (
    prompt("test_simple_prompt", simple),
    prompt("test_prompt_with_arguments", with_arguments, "arg1", "arg2"),
    prompt("test_prompt_with_embedded_resource", with_resource, "resourceUri"),
    prompt("test_prompt_with_image", with_image),
)


async def completed(blank: Blank) -> Sequence[str]:
    return [each for each in ("paris", "park", "party") if each.startswith(blank.begun)]


TOOLS: tuple[Tool, ...] = (
    *(value for name, value in list(globals().items()) if name.startswith("test_")),
    HeaderTool(),
    SchemaTool(),
)


async def serve() -> None:
    """Serve until stopped; what listens already can be used."""
    served = Served(
        tools=ToolRegistry(TOOLS),
        name="conformance",
        version="1",
        resources=Readable(),
        templates=(ResourceTemplate(uri="test://template/{id}/data", name="data"),),
        prompts=PROMPTS,
        complete=completed,
        news=News(),
    )
    async with http_endpoint(served) as endpoint:
        app = Starlette(routes=[Route("/mcp", endpoint)])
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
            await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(serve())
