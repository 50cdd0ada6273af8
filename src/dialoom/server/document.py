"""The OpenAPI document, made from the table that serves the calls."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

import dialoom
from dialoom.server.problems import MEDIA_TYPE, ProblemDocument
from dialoom.server.routes import AnyRoute, Nothing

Schema = dict[str, Any]
_REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_OPENAI_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}}}},
}
_ALWAYS = (400, 401, 403, 404, 422, 429, 503)


def openapi_document(routes: Iterable[AnyRoute]) -> Schema:
    """Return the document of OpenAPI 3.1 as JSON values."""
    table = list(routes)
    kinds = [ProblemDocument, *(kind for route in table for kind in _kinds(route))]
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=_any_value, ref_template=_REF)
    named = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Schema] = {}
    for route in table:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, named, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dialoom", "version": dialoom.__version__, "license": {"name": "MIT"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _kinds(route: AnyRoute) -> Iterable[type]:
    for kind in (route.query, route.body, route.answer):
        if kind is not None and kind is not Nothing:
            yield kind


def _operation(route: AnyRoute, named: Mapping[type, Schema], components: Mapping[str, Schema]) -> Schema:
    operation: Schema = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query(route, components), *_headers(route)],
        "responses": _responses(route, named),
    }
    if route.body is not Nothing:
        content = {"application/json": {"schema": named[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.takes:
        content = {each: {"schema": {"type": "string", "format": "binary"}} for each in route.takes}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(route: AnyRoute) -> Iterable[Schema]:
    for name in _PARAMETER.findall(route.path):
        schema = {"type": "string", "minLength": 1, "maxLength": 200}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query(route: AnyRoute, components: Mapping[str, Schema]) -> Iterable[Schema]:
    if route.query is Nothing:
        return
    schema = components[route.query.__name__]
    for name, field in schema["properties"].items():
        yield {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": field}


def _headers(route: AnyRoute) -> Iterable[Schema]:
    for name in route.headers:
        yield {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}


def _responses(route: AnyRoute, named: Mapping[type, Schema]) -> Schema:
    responses: Schema = {}
    if route.answer is not None:
        schema = named[route.answer]
        content = {route.media: {"schema": schema}, **{media: {} for media in route.also}}
        responses[str(route.status)] = {"description": "done", "content": content}
    elif route.media != "application/json":
        responses[str(route.status)] = {"description": "done", "content": {route.media: {}}}
    else:
        responses["204"] = {"description": "done"}
    problem: Schema = {MEDIA_TYPE: {"schema": named[ProblemDocument]}}
    if route.path.startswith("/v1/"):
        problem["application/json"] = {"schema": _OPENAI_ERROR}
    reading = (408, 413, 415) if route.body is not Nothing or route.takes else ()
    for status in (*_ALWAYS, *reading, *route.refusals):
        responses[str(status)] = {"description": "refused", "content": problem}
    return responses


def _any_value(kind: type) -> Schema:
    if kind is object:
        return {"description": "any JSON value"}
    raise NotImplementedError(f"{kind} has no JSON Schema; use a struct")
