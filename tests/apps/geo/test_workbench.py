"""From an uploaded file of points to a map, over the cards of a conversation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialoom.cli.serve_geo import GEO_HANDLERS
from dialoom.server import Parts
from tests.server.conftest import clock, forms, parts, provider, tools
from tests.server.live import Live, copied, following, served
from tests.server.test_card_work import ROOT, add_card, becomes, code_of, do, shown_cards, upload

__all__ = ["clock", "forms", "parts", "provider", "tools"]

ROWS = [(x, y, 2 * x + y) for x in range(0, 100, 10) for y in range(0, 80, 10)]
NAMED = "东坐标,北坐标,高程\n" + "\n".join(f"{x},{y},{z}" for x, y, z in ROWS) + "\n5,5,-99999\n"
BARE = "\n".join(f"{x} {y} {z}" for x, y, z in ROWS)


def wired(parts: Parts) -> Parts:
    return copied(parts, card_handlers=GEO_HANDLERS)


async def opened(live: Live, text: str, name: str = "wells.csv") -> str:
    """Begin a conversation with a card of a file."""
    conversation = await live.begin()
    await add_card(live, conversation, "XyzLoadCard", id="x")
    done = await do(live, conversation, "x", "configure", fileId=await upload(live, name, text))
    assert done.status_code == 200, done.text
    return conversation


async def of_type(live: Live, conversation: str, kind: str) -> list[dict[str, Any]]:
    cards = (await shown_cards(live, conversation)).values()
    return [each["card"] for each in cards if each["type"] == kind]


async def test_a_file_becomes_a_map(parts: Parts, tmp_path: Path) -> None:
    async with served(wired(parts), tmp_path) as live:
        conversation = await opened(live, NAMED)
        card = (await shown_cards(live, conversation))["x"]["card"]
        assert card["mapping"] == {"x": "东坐标", "y": "北坐标", "z": "高程"}
        assert (card["fileName"], card["encoding"], card["columns"][2]["nulls"]) == ("wells.csv", "utf-8", 1)
        await do(live, conversation, "x", "load")
        card = (await shown_cards(live, conversation))["x"]["card"]
        assert (card["status"], card["stats"]["used"], card["stats"]["dropped"]) == ("loaded", 80, 1)
        picture = await live.client.get(f"/api/v1/files/{card['thumbnailId']}")
        assert picture.headers["content-type"] == "image/png"
        (table,), (draft,) = [
            await of_type(live, conversation, kind) for kind in ("Table", "GriddingParamCard")
        ]
        assert (table["totalRowCount"], table["datasetId"]) == (80, card["datasetId"])
        assert draft["extent"] == {"xMin": 0, "xMax": 90, "yMin": 0, "yMax": 70}
        began = (await do(live, conversation, draft["id"], "run", method="linear")).json()["card"]
        assert (began["status"], began["nx"], began["method"]) == ("running", 21, "linear")
        done = await becomes(live, conversation, draft["id"], status="done")
        result = done["result"]
        assert (result["nx"], result["ny"], len(result["files"])) == (21, 16, 4)
        assert result["fileNames"] == [f"wells.csv.{kind}" for kind in ("asc", "csv", "npy", "png")]
        assert result["rmse"] < 1e-6
        async with following(live, f"{ROOT}/{conversation}/events") as events:
            while not (plots := await of_type(live, conversation, "Plot")):
                await anext(events)
        assert plots[0]["caption"].startswith("linear, 21 × 16 nodes, rmse ")
        (flow,) = await of_type(live, conversation, "WorkflowStatus")
        assert (flow["status"], {each["status"] for each in flow["steps"]}) == ("done", {"done"})
        grid = (await live.client.get(f"/api/v1/files/{result['gridId']}")).content
        (tmp_path / "back.npy").write_bytes(grid)
        assert np.load(tmp_path / "back.npy").shape == (16, 21)


async def test_columns_that_no_name_tells_are_asked_and_taken_over(parts: Parts, tmp_path: Path) -> None:
    async with served(wired(parts), tmp_path) as live:
        conversation = await opened(live, BARE, "wells.xyz")
        (question,) = await of_type(live, conversation, "ColumnMatch")
        assert [each["matchedColumn"] for each in question["mappings"]] == [
            "column 1",
            "column 2",
            "column 3",
        ]
        pairs = {"x": "column 2", "y": "column 1", "z": "column 3"}
        await do(live, conversation, "x.columns", "confirm", mappings=pairs)
        await becomes(live, conversation, "x", mapping=pairs)
        again = await do(live, conversation, "x", "configure", skipRows=1, mapping={"x": "column 1"})
        assert again.json()["card"]["mapping"] == {"x": "column 1", "y": "column 2", "z": "column 3"}
        await add_card(live, conversation, "ColumnMatch", id="m", requiredColumns=["a"], previewColumns=["b"])
        other = await do(live, conversation, "m", "confirm", mappings={"a": "b"})
        assert other.json()["card"]["status"] == "confirmed"


async def test_a_grid_is_cancelled_on_its_card_and_can_be_run_again(parts: Parts, tmp_path: Path) -> None:
    async with served(wired(parts), tmp_path) as live:
        conversation = await opened(live, NAMED)
        await do(live, conversation, "x", "load")
        (draft,) = await of_type(live, conversation, "GriddingParamCard")
        card, large = draft["id"], {"dx": 0.04, "dy": 0.04}
        idle = await do(live, conversation, card, "cancel")
        assert idle.json()["card"]["status"] == "draft"
        await do(live, conversation, card, "run", cell=large)
        twice = await do(live, conversation, card, "run", cell=large)
        assert code_of(twice) == (422, "usage")
        await do(live, conversation, card, "cancel")
        await becomes(live, conversation, card, status="draft")
        async with following(live, f"{ROOT}/{conversation}/events") as events:
            while (await of_type(live, conversation, "WorkflowStatus"))[0].get("status") != "cancelled":
                await anext(events)
        failed = await do(live, conversation, card, "run", method="kriging", cell={"dx": 5, "dy": 5})
        assert failed.status_code == 200
        shown = await becomes(live, conversation, card, status="draft")
        assert "kriging is not built here" in shown["error"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "no extent or no cell"),
        ({"mask": "polygon"}, "mask by polygon"),
        ({"search": {"sectors": 4}}, "sectors and anisotropy"),
        ({"extent": {"xMin": 5, "xMax": 5, "yMin": 0, "yMax": 1}}, "from a smaller to a larger"),
        ({"cell": {"dx": 1e-3, "dy": 1e-3}}, "at most 4000000"),
        ({"datasetId": None}, "names no points"),
        ({"datasetId": "gone"}, "no data set"),
    ],
)
async def test_settings_that_cannot_be_run_are_refused(
    parts: Parts, tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    whole = {
        "extent": {"xMin": 0, "xMax": 10, "yMin": 0, "yMax": 10},
        "cell": {"dx": 1, "dy": 1},
        "datasetId": "d",
    }
    async with served(wired(parts), tmp_path) as live:
        conversation = await live.begin()
        await add_card(
            live, conversation, "GriddingParamCard", id="g", **({**whole, **fields} if fields else {})
        )
        refused = await do(live, conversation, "g", "run")
        assert (refused.status_code in {404, 422}, words in refused.json()["detail"]) == (True, True)
        assert list(await shown_cards(live, conversation)) == ["g"]


async def test_a_file_that_is_not_set_up_is_refused(parts: Parts, tmp_path: Path) -> None:
    async with served(wired(parts), tmp_path) as live:
        conversation = await live.begin()
        await add_card(live, conversation, "XyzLoadCard", id="x")
        assert "upload one" in (await do(live, conversation, "x", "load")).json()["detail"]
        file = await upload(live, "words.txt", "only words\nand more\n")
        await do(live, conversation, "x", "configure", fileId=file)
        assert "choose the columns" in (await do(live, conversation, "x", "load")).json()["detail"]
        swapped = "lat lon z\n30.5 104.5 1\n"
        other = await do(live, conversation, "x", "configure", fileId=await upload(live, "s.xyz", swapped))
        assert (other.json()["card"]["mapping"], len(other.json()["card"]["warnings"])) == (
            {"x": "lon", "y": "lat", "z": "z"},
            1,
        )
        gone = await do(live, conversation, "x", "configure", mapping={"x": "nowhere"})
        assert "no column 'nowhere'" in gone.json()["detail"]
        await do(live, conversation, "x", "configure", mapping={"x": "lat", "y": "lon"})
        card = (await shown_cards(live, conversation))["x"]["card"]
        assert [each.partition(":")[0] for each in card["warnings"]] == [
            "x and y look swapped",
            "x and y look like degrees, not metres",
        ]
        alone = await do(live, conversation, "x", "load")
        assert "one place" in alone.json()["detail"]
        xlsx = await do(live, conversation, "x", "configure", format="xlsx")
        assert "save the sheet as CSV" in xlsx.json()["detail"]
