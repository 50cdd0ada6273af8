"""Conversations as plain HTML: what a browser shows without the built page and without a script."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, cast
from urllib.parse import quote, urlencode

from dialoom.server.run_tale import RunView
from dialoom.server.shown import Shown, ShownCard, ShownHeader, ShownText

CSS = """\
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 1rem auto; padding: 0 1rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
article { border-left: 4px solid #888; margin: 1rem 0; padding: 0 1rem; }
article.user { border-color: #2563eb; }
.problem { color: #b91c1c; }
label { display: block; margin: .5rem 0; }
textarea, input:not([type=checkbox]) { width: 100%; box-sizing: border-box; font: inherit; }
table { border-collapse: collapse; } td, th { border: 1px solid #888; padding: .2rem .5rem; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } a { color: #93c5fd; } }
"""
_AUTHORS = {"user": "You", "assistant": "Answer", "tool": "Tool", "system": "System"}
_INPUTS = {"number": "number", "integer": "number", "date": "date", "secret": "password"}
MAX_ROWS = 50
NOT_BUILT = (
    "the page is not built, so / leads to the plain one; with npm, run in the folder of the source: "
    "npm --prefix web ci && npm --prefix web run build; then start again"
)


def page_html(title: str, body: str, *, refresh: bool = False, language: str = "en") -> str:
    """Return a whole page; with `refresh` it is loaded again every two seconds."""
    again = '<meta http-equiv="refresh" content="2">' if refresh else ""
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">{again}'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f'<link rel="stylesheet" href="/plain.css"></head><body>{body}</body></html>\n'
    )


def list_html(headers: Iterable[ShownHeader], *, query: str, cursor: str | None, is_built: bool) -> str:
    """Return the list of conversations, with what begins and finds one; says when the page is not built."""
    rows = "".join(
        f'<li><a href="/plain/{header.id}">{escape(header.title or "Untitled")}</a> '
        f"<small>{escape(header.updated_at[:10])}</small></li>"
        for header in headers
    )
    more = f'<p><a href="/plain?{urlencode({"q": query, "cursor": cursor})}">Older</a></p>' if cursor else ""
    notice = "" if is_built else f'<p role="note">{escape(NOT_BUILT)}</p>'
    return page_html(
        "Conversations",
        f"<h1>Conversations</h1>{notice}"
        '<form method="post" action="/plain"><button>New</button></form>'
        '<form action="/plain" role="search"><label>Find <input name="q" type="search" '
        f'value="{escape(query)}"></label><button>Find</button></form><ul>{rows}</ul>{more}',
    )


def conversation_html(
    header: ShownHeader, entries: Sequence[Shown], *, start: int, run: RunView | None, problem: str = ""
) -> str:
    """Return what was said and shown, and what can be said next."""
    running = run is not None and run.status == "running"
    parts = [
        f'<p><a href="/plain">Conversations</a></p><h1>{escape(header.title or "Untitled")}</h1>',
        f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else "",
        f'<p><a href="/plain/{header.id}?before={start}">Earlier</a></p>' if start else "",
        *(entry_html(header.id, entry, open_=not running) for entry in entries),
        f'<article><p class="text">{escape(run.text)}</p></article>' if run is not None and run.text else "",
        _sending(header.id, run if running else None),
    ]
    return page_html(header.title or "Untitled", "".join(parts), refresh=running)


def entry_html(conversation_id: str, entry: Shown, *, open_: bool) -> str:
    """Return one entry; a card that is `open_` and not locked can be answered."""
    if isinstance(entry, ShownText):
        return _text_html(entry)
    card = entry.card
    if card is None:
        return (
            f'<article><h2>{escape(entry.type)}</h2><p class="problem">{escape(entry.problem)}</p></article>'
        )
    title = escape(str(card.get("title") or entry.type))
    status = f" <small>{escape(str(card['status']))}</small>" if card.get("status") else ""
    return (
        f"<article><h2>{title}{status}</h2>{_card_html(conversation_id, entry, card, open_=open_)}</article>"
    )


def _text_html(entry: ShownText) -> str:
    calls = "".join(f"<p>Calls {escape(call.name)} {escape(call.raw[:500])}</p>" for call in entry.tool_calls)
    sources = "".join(
        _source_html(cast("dict[str, Any]", each)) for each in entry.sources if isinstance(each, dict)
    )
    listed = f"<details><summary>Sources</summary><ol>{sources}</ol></details>" if sources else ""
    return (
        f'<article class="{escape(entry.role)}"><h2>{_AUTHORS[entry.role]}</h2>'
        f'<p class="text">{escape(entry.content)}</p>{calls}{listed}</article>'
    )


def _source_html(source: dict[str, Any]) -> str:
    number, title, text = (escape(str(source.get(name, ""))) for name in ("index", "title", "text"))
    return f'<li value="{number}">{title}<p class="text">{text}</p></li>'


def _card_html(conversation_id: str, entry: ShownCard, card: dict[str, Any], *, open_: bool) -> str:
    answerable = open_ and not entry.locked and entry.card_id is not None
    if entry.type == "Approval":
        question, arguments = (escape(str(card.get(name, ""))) for name in ("question", "arguments"))
        asked = f'<p>{question}</p><p class="text">{arguments}</p>'
        yes, no = (
            f'<button name="approved" value="{value}">{word}</button>'
            for value, word in (("true", "Approve"), ("", "Decline"))
        )
        return asked + (_form(conversation_id, entry, "decide", yes + no) if answerable else "")
    if entry.type == "Form":
        fields = "".join(_field_html(field, card, open_=answerable) for field in card.get("fields", ()))
        label = escape(str(card.get("submitLabel") or "Submit"))
        return (
            _form(conversation_id, entry, "submit", f"{fields}<button>{label}</button>")
            if answerable
            else fields
        )
    if entry.type == "Table":
        return _table_html(card)
    kind, payload = escape(entry.type), escape(entry.payload)
    return f'<details><summary>{kind}</summary><p class="text">{payload}</p></details>'


def _form(conversation_id: str, entry: ShownCard, action: str, inside: str) -> str:
    card = quote(entry.card_id or "", safe="")
    where = f"/plain/{conversation_id}/cards/{card}/{action}"
    rev = f'<input type="hidden" name="rev" value="{entry.rev}">'
    return f'<form method="post" action="{escape(where)}">{rev}{inside}</form>'


def _field_html(field: dict[str, Any], card: dict[str, Any], *, open_: bool) -> str:
    name, label = escape(f"field.{field['id']}"), escape(str(field.get("label") or field["id"]))
    values = cast("dict[str, Any]", card.get("submittedValues") or {})
    value = values.get(field["id"], field.get("currentValue", field.get("default")))
    if not open_:
        return f"<p>{label}: {escape('' if value is None else str(value))}</p>"
    required = " required" if field.get("required") and field.get("type") != "bool" else ""
    text = escape("" if value is None else str(value))
    match field.get("type"):
        case "bool":
            checked = " checked" if value is True else ""
            return f'<label><input type="checkbox" name="{name}"{checked}> {label}</label>'
        case "select" | "multiselect" as kind:
            return _choice_html(field, name, label, multiple=kind == "multiselect", chosen=value)
        case "textarea":
            return f'<label>{label}<textarea name="{name}"{required}>{text}</textarea></label>'
        case kind:
            typed = _INPUTS.get(str(kind), "text")
            step = ' step="any"' if kind == "number" else ""
            return (
                f'<label>{label}<input type="{typed}" name="{name}" value="{text}"{step}{required}></label>'
            )


def _choice_html(field: dict[str, Any], name: str, label: str, *, multiple: bool, chosen: object) -> str:
    picked = cast("list[object]", chosen) if isinstance(chosen, list) else [chosen]
    options = ['<option value=""></option>'] if not multiple else []
    for each in cast("list[dict[str, Any]]", field.get("options") or []):
        value, word = each["value"], each.get("label") or each["value"]
        selected = " selected" if value in picked else ""
        options.append(f'<option value="{escape(str(value))}"{selected}>{escape(str(word))}</option>')
    many = " multiple" if multiple else ""
    return f'<label>{label}<select name="{name}"{many}>{"".join(options)}</select></label>'


def _table_html(card: dict[str, Any]) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in card.get("columnNames", ()))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in card.get("rows", ())[:MAX_ROWS]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _sending(conversation_id: str, run: RunView | None) -> str:
    if run is not None:
        stop = f"/plain/{conversation_id}/cancel"
        return (
            f'<p role="status">Answering…</p><form method="post" action="{stop}"><button>Stop</button></form>'
        )
    return (
        f'<form method="post" action="/plain/{conversation_id}/messages">'
        '<label>Message <textarea name="text" rows="4" required></textarea></label>'
        "<button>Send</button></form>"
    )
