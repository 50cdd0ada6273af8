"""The card types everyone knows: their fields, their notes, and what people do with them."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, load_yaml
from dialoom.conversation.cards import (
    DEFAULT_CARDS,
    Approval,
    Card,
    CitedSource,
    ColumnMapping,
    ColumnMatch,
    ErrorCard,
    Form,
    FormField,
    GriddingParamCard,
    KnowledgeBase,
    KnowledgeSource,
    Option,
    Parameter,
    ParameterSet,
    Plot,
    PreviewColumn,
    RequiredColumn,
    Sources,
    Table,
    TableColumn,
    WorkflowStatus,
    WorkflowStep,
    XyzLoadCard,
)
from dialoom.conversation.cards.gridding import GridCell, IdwParams, KrigingParams

FORM = Form(
    id="f1",
    form_id="grid",
    title="网格参数",
    status="open",
    fields=(
        FormField(
            id="cell", label="网格间距", type="number", current_value=25, min=1, max=1000, required=True
        ),
        FormField(
            id="method", label="方法", type="select", options=("idw", Option(value="rbf", label="RBF"))
        ),
        FormField(id="power", type="integer", default=2, visible_if={"method": "idw"}),
        FormField(id="tags", type="multiselect", options=("a", "b"), current_value=("a",)),
    ),
    submit_label="提交",
)
PARAMETERS = ParameterSet(
    title="Search",
    items=(
        Parameter(
            name="radius",
            value_text="500",
            description="how far",
            field_type="number",
            unit="m",
            min=1,
            default="100",
        ),
        Parameter(name="sectors", value_text="4", options=("1", "4", "8")),
        Parameter(name="label", value_text="wells"),
    ),
    preset_id="p1",
)
TABLE = Table(
    title="Wells",
    column_names=("name", "x", "ok"),
    columns=(TableColumn(name="x", dtype="float", format=".1f"),),
    rows=(("W-1", 1.0, True), ("017", 2, None), ("no", -0.5, False)),
    total_row_count=900,
    max_preview_rows=3,
    dataset_id="d1",
)
MATCH = ColumnMatch(
    title="Columns",
    required_columns=(
        RequiredColumn(name="x", label="Easting", synonyms=("东坐标",)),
        RequiredColumn(name="weight", required=False),
    ),
    preview_columns=(PreviewColumn(name="East", dtype="float", samples=(1.5, None), null_ratio=0.5), "North"),
    mappings=(ColumnMapping(required_column="x", matched_column="East", confidence=0.9, by="auto"),),
)
WORKFLOW = WorkflowStatus(
    title="Gridding",
    run_id="r1",
    steps=(
        WorkflowStep(id="grid", display_name="Grid", order=2, status="running", progress=0.5),
        WorkflowStep(id="load", display_name="Load", order=1, status="done"),
    ),
)
KNOWLEDGE = KnowledgeBase(
    title="Handbook",
    kb_id="kb",
    name="handbook",
    sources=(KnowledgeSource(id="s", label="a.pdf", status="done", chunks=7),),
    totals={"docs": 1, "chunks": 7},
    manifest={"embedder": "hash", "dim": 128},
)
POINTS = XyzLoadCard(
    title="Points",
    file_name="wells.xyz",
    columns=({"index": 0, "name": "x", "min": 1.5},),
    mapping={"x": "x", "y": 1, "weight": None},
    null_values=("NaN", "-99999", "1.70141e38"),
    filter={"bbox": (0, 0, 10, 10)},
    stats={"n": 10, "used": 9, "dropped": 1},
)
GRIDDING = GriddingParamCard(
    title="Grid",
    method="idw",
    method_params={"power": 3},
    cell=GridCell(dx=25, dy=25),
    nx=200,
    ny=100,
    result={"rmse": 0.25},
)
APPROVAL = Approval(title="Send", question="Send the mail?", tool_name="send_mail", arguments={"to": "ada"})
PLOT = Plot(title="Map", image_id="i1", caption="Depth", alt_text="a map of depth")
SOURCES = Sources(
    title="", sources=(CitedSource(index=1, id="a", title="Manual"), CitedSource(index=2, id="b"))
)
ERROR = ErrorCard(title="Run", code="provider", message="the model did not answer", retryable=True)

EVERY_CARD = (
    *(FORM, PARAMETERS, TABLE, MATCH, WORKFLOW, KNOWLEDGE, POINTS, GRIDDING),
    *(APPROVAL, PLOT, SOURCES, ERROR),
)


def payload_of(card: Card) -> dict[str, object]:
    payload = load_yaml(DEFAULT_CARDS.encode(card).payload)
    assert isinstance(payload, dict)
    return {**payload}


@pytest.mark.promise(
    "cards-001",
    "cards-003",
    "cards-004",
    "cards-005",
    "cards-006",
    "cards-007",
    "cards-008",
    "cards-009",
    "cards-010",
    "cards-012",
    "cards-014",
    "cards-029",
)
@pytest.mark.parametrize("card", EVERY_CARD, ids=lambda card: card.type)
def test_every_type_survives_its_yaml(card: Card) -> None:
    entry = DEFAULT_CARDS.encode(card)
    decoded = DEFAULT_CARDS.decode(entry.type, entry.payload)
    assert decoded == card
    assert type(decoded) is type(card)
    assert entry.type == payload_of(card)["type"] == card.type
    assert DEFAULT_CARDS.encode(decoded) == entry


@pytest.mark.promise("cards-016", "cards-017")
def test_a_form_payload_has_the_seeds_fields() -> None:
    payload = payload_of(FORM)
    assert list(payload) == ["type", "id", "title", "status", "formId", "fields", "submitLabel"]
    assert payload["fields"][0] == {
        "id": "cell",
        "label": "网格间距",
        "type": "number",
        "currentValue": 25,
        "required": True,
        "min": 1,
        "max": 1000,
    }


@pytest.mark.promise("cards-020", "cards-021")
def test_a_parameter_set_payload_has_the_seeds_fields() -> None:
    payload = payload_of(PARAMETERS)
    assert list(payload) == ["type", "title", "items", "presetId"]
    assert {"name", "valueText", "description", "fieldType"} <= set(payload["items"][0])
    assert payload["items"][1] == {"name": "sectors", "valueText": "4", "options": ["1", "4", "8"]}


@pytest.mark.promise("cards-022")
def test_a_parameter_set_loads_from_json_and_yaml_alike() -> None:
    json_text = (
        '{"type": "ParameterSet", "title": "Search", "items": [{"name": "radius", "valueText": "500"}]}'
    )
    yaml_text = "type: ParameterSet\ntitle: Search\nitems:\n- name: radius\n  valueText: 500\n"
    expected = ParameterSet(title="Search", items=(Parameter(name="radius", value_text="500"),))
    assert DEFAULT_CARDS.decode("ParameterSet", json_text) == expected
    assert DEFAULT_CARDS.decode("ParameterSet", yaml_text) == expected


@pytest.mark.promise("cards-023", "cards-024")
def test_a_table_payload_keeps_a_part_of_its_rows_and_says_how_many_there_are() -> None:
    payload = payload_of(TABLE)
    assert payload["columnNames"] == ["name", "x", "ok"]
    assert payload["rows"] == [["W-1", 1.0, True], ["017", 2, None], ["no", -0.5, False]]
    assert (payload["totalRowCount"], payload["maxPreviewRows"]) == (900, 3)


@pytest.mark.promise("cards-013")
def test_a_preview_cuts_rows_and_long_texts() -> None:
    table = Table.preview(("a",), [("x" * 5000,), (1,), (2,)], title="Long", limit=2)
    assert table == Table(
        title="Long",
        column_names=("a",),
        rows=(("x" * 1999 + "…",), (1,)),
        total_row_count=3,
        max_preview_rows=2,
    )


@pytest.mark.promise("cards-025", "cards-026")
def test_a_column_match_payload_pairs_required_with_matched_columns() -> None:
    payload = payload_of(MATCH)
    assert list(payload) == ["type", "title", "requiredColumns", "previewColumns", "mappings"]
    assert payload["mappings"] == [
        {"requiredColumn": "x", "matchedColumn": "East", "confidence": 0.9, "by": "auto"}
    ]


@pytest.mark.promise("cards-027", "cards-028")
def test_a_workflow_payload_has_steps_with_name_order_and_status() -> None:
    payload = payload_of(WORKFLOW)
    assert list(payload) == ["type", "title", "runId", "steps"]
    assert payload["steps"][1] == {"id": "load", "displayName": "Load", "order": 1, "status": "done"}


@pytest.mark.parametrize(
    ("card", "english", "chinese"),
    [
        (FORM, "[shown form: 网格参数]", "[已展示表单：网格参数]"),
        (
            PARAMETERS,
            "[shown parameter set: Search (radius=500m, sectors=4, label=wells)]",
            "[已展示参数集：Search（radius=500m, sectors=4, label=wells）]",
        ),
        (TABLE, "[shown table: Wells (900 × name, x, ok)]", "[已展示表格：Wells（900 × name, x, ok）]"),
        (MATCH, "[shown column match: Columns (x=East)]", "[已展示列匹配：Columns（x=East）]"),
        (
            WORKFLOW,
            "[shown workflow: Gridding (1/2, Grid: running)]",
            "[已展示工作流：Gridding（1/2, Grid: running）]",
        ),
        (
            KNOWLEDGE,
            "[shown knowledge base: Handbook (handbook, docs=1, chunks=7)]",
            "[已展示知识库：Handbook（handbook, docs=1, chunks=7）]",
        ),
        (
            POINTS,
            "[shown point file: Points (file=wells.xyz, x=x, y=1, points=9)]",
            "[已展示XYZ 数据：Points（file=wells.xyz, x=x, y=1, points=9）]",
        ),
        (
            GRIDDING,
            "[shown gridding parameters: Grid (method=idw, cell=25.0×25.0, nodes=200×100, rmse=0.25)]",
            "[已展示网格化参数：Grid（method=idw, cell=25.0×25.0, nodes=200×100, rmse=0.25）]",
        ),
        (
            APPROVAL,
            "[shown approval: Send (send_mail, Send the mail?)]",
            "[已展示审批：Send（send_mail, Send the mail?）]",
        ),
        (PLOT, "[shown plot: Map (Depth)]", "[已展示图：Map（Depth）]"),
        (SOURCES, "[shown sources: [1] Manual, [2] b]", "[已展示来源：[1] Manual, [2] b]"),
        (
            ERROR,
            "[shown error: Run (provider: the model did not answer)]",
            "[已展示错误：Run（provider: the model did not answer）]",
        ),
        (
            FORM.submit({"cell": 50, "method": "idw", "tags": ["a", "b"]}),
            '[form "网格参数" submitted: cell=50, method=idw, tags=a/b]',
            "[表单“网格参数”已提交：cell=50, method=idw, tags=a/b]",
        ),
        (Plot(title="Map", status="failed"), '[plot "Map" failed]', "[图“Map”失败]"),
        (XyzLoadCard(title="P"), "[shown point file: P]", "[已展示XYZ 数据：P]"),
        (KnowledgeBase(title="K"), "[shown knowledge base: K]", "[已展示知识库：K]"),
        (Table(title="T", rows=((1,),)), "[shown table: T (1 ×)]", "[已展示表格：T（1 ×）]"),
        (
            GriddingParamCard(title="G"),
            "[shown gridding parameters: G (method=idw)]",
            "[已展示网格化参数：G（method=idw）]",
        ),
        (
            Form(title="B", form_id="b", submitted_values={"ok": True, "no": False}, status="submitted"),
            '[form "B" submitted: ok=true, no=false]',
            "[表单“B”已提交：ok=true, no=false]",
        ),
    ],
)
def test_notes_say_what_a_model_needs_in_both_languages(card: Card, english: str, chinese: str) -> None:
    assert card.note("en") == english
    assert card.note("zh") == chinese


def test_the_language_is_the_cards_own_or_that_of_its_title() -> None:
    assert (FORM.language, TABLE.language) == ("zh", "en")
    assert Table(title="Wells", lang="zh").language == "zh"


def test_parameters_are_applied_within_their_bounds_and_reset() -> None:
    applied = DEFAULT_CARDS.act(PARAMETERS, "apply", {"values": {"radius": "250", "sectors": "8"}})
    assert isinstance(applied, ParameterSet)
    assert [item.value_text for item in applied.items] == ["250", "8", "wells"]
    assert (applied.status, applied.dirty) == ("applied", False)
    reset = DEFAULT_CARDS.act(applied, "reset", {})
    assert isinstance(reset, ParameterSet)
    assert [item.value_text for item in reset.items] == ["100", "8", "wells"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"depth": "1"}, "there is no parameter 'depth' in this set"),
        ({"sectors": "5"}, "parameter 'sectors' takes one of: 1, 4, 8"),
        ({"radius": "far"}, "parameter 'radius' is a number, not 'far'"),
        ({"radius": "0"}, "parameter 'radius' lies between 1.0 and inf"),
        ({"radius": "nan"}, "parameter 'radius' lies between 1.0 and inf"),
        ({"radius": 5}, "this ParameterSet card cannot take apply: values.radius: "),
    ],
)
def test_parameters_out_of_bounds_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        DEFAULT_CARDS.act(PARAMETERS, "apply", {"values": values})
    assert str(refusal.value).startswith(message)


def test_a_bound_above_alone_holds() -> None:
    one = Parameter(name="a", max=5)
    assert one.with_value("-1e9").value_text == "-1e9"
    with pytest.raises(UsageError, match=r"lies between -inf and 5\.0"):
        one.with_value("6")


def test_a_column_match_is_confirmed_with_columns_that_exist() -> None:
    confirmed = DEFAULT_CARDS.act(MATCH, "confirm", {"mappings": {"x": "North"}})
    assert confirmed == MATCH.changed(
        status="confirmed", mappings=(ColumnMapping(required_column="x", matched_column="North", by="user"),)
    )


@pytest.mark.parametrize(
    ("mappings", "message"),
    [
        ({}, "column 'x' has no partner; choose one"),
        ({"x": "East", "y": "North"}, "column 'y' is not asked for; leave it out"),
        ({"x": "South"}, "the file has no column 'South'; choose another"),
        ({"x": "East", "weight": "East"}, "one column is matched twice; give each its own"),
    ],
)
def test_a_match_that_cannot_be_is_refused(mappings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        MATCH.confirm(mappings)
    assert str(refusal.value) == message


def test_required_columns_may_be_bare_names() -> None:
    bare = ColumnMatch(required_columns=("x",), preview_columns=("East",))
    assert bare.confirm({"x": "East"}).status == "confirmed"


def test_an_approval_is_decided_once() -> None:
    decided = DEFAULT_CARDS.act(APPROVAL, "decide", {"approved": True, "editedArguments": {"to": "bob"}})
    assert decided == APPROVAL.changed(status="approved", comment="", edited_arguments={"to": "bob"})
    assert decided.note("en") == '[approval "Send" approved: send_mail, Send the mail?]'
    assert APPROVAL.decide(approved=False, comment="not now").status == "declined"
    with pytest.raises(UsageError, match="this approval is approved; it cannot be decided again"):
        DEFAULT_CARDS.act(decided, "decide", {"approved": False})


def test_settings_of_loading_gridding_and_attaching_change_their_cards() -> None:
    configured = DEFAULT_CARDS.act(POINTS, "configure", {"encoding": "gb18030", "skipRows": 2})
    assert configured == POINTS.changed(encoding="gb18030", skip_rows=2)
    attached = DEFAULT_CARDS.act(KNOWLEDGE, "attach", {"topK": 5})
    assert attached == KNOWLEDGE.changed(attach={"topK": 5})
    run = DEFAULT_CARDS.act(GRIDDING, "run", {"method": "kriging", "methodParams": {"range": 500}})
    assert isinstance(run, GriddingParamCard)
    assert run.params == KrigingParams(range=500)
    assert GRIDDING.params == IdwParams(power=3)


@pytest.mark.parametrize(
    ("card", "action", "fields"),
    [
        (WORKFLOW, "cancel", {}),
        (WORKFLOW, "retry", {"stepId": "load"}),
        (KNOWLEDGE, "query", {"text": "holidays?"}),
        (KNOWLEDGE, "remove_source", {"sourceId": "s"}),
        (POINTS, "load", {}),
        (ERROR, "retry", {}),
    ],
)
def test_an_action_whose_work_lies_outside_leaves_the_card(
    card: Card, action: str, fields: dict[str, object]
) -> None:
    assert DEFAULT_CARDS.act(card, action, fields) == card


@pytest.mark.parametrize(
    ("card_type", "payload", "reason"),
    [
        ("GriddingParamCard", "nx: 4000\nny: 4000", "a grid of 4000 x 4000 nodes is over 4000000"),
        (
            "GriddingParamCard",
            "method: idw\nmethodParams: {power: -1}",
            "power: Input should be greater than 0",
        ),
        ("GriddingParamCard", "cell: {dx: 0, dy: 1}", "cell.dx: Input should be greater than 0"),
        ("XyzLoadCard", "previewRows:\n" + "- [1]\n" * 51, "previewRows: Tuple should have at most 50 items"),
        ("KnowledgeBase", "sources:\n" + "- {id: a}\n" * 201, "sources: Tuple should have at most 200 items"),
        ("WorkflowStatus", "steps: [{id: a, status: lost}]", "steps.0.status: Input should be 'pending'"),
        ("Sources", "sources: [{index: 0}]", "sources.0.index: Input should be greater than or equal to 1"),
    ],
)
def test_a_payload_out_of_bounds_is_a_placeholder(card_type: str, payload: str, reason: str) -> None:
    card = DEFAULT_CARDS.decode_entry(CardEntry(type=card_type, payload=payload))
    assert getattr(card, "reason", "").startswith(reason)
