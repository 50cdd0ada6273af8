"""A table of a million rows: paged anywhere, in any order, and exported; never is all of it in memory."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom.server import Parts
from dialoom.server.arranged import MAX_ARRANGED
from dialoom.server.dataset_store import Cell, DatasetColumn, DatasetStore, Order
from dialoom.server.problems import ProblemError
from tests.server.live import served

MANY = 1_000_000


def peak_memory() -> int:
    """Return the most bytes this process had in memory since it was asked to count anew."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.slow
async def test_a_million_rows_are_uploaded_paged_sorted_searched_and_exported(
    parts: Parts, tmp_path: Path
) -> None:
    content = "number,depth,name\n" + "".join(f"{at},{-at},well {at % 1000}\n" for at in range(MANY))
    async with served(parts, tmp_path) as live:
        file = (await live.client.post("/api/v1/files", content=content.encode(), headers=CSV)).json()
        del content
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        before = peak_memory()
        made = (await live.client.post("/api/v1/datasets", json={"fileId": file["id"]})).json()
        assert (made["total"], [each["dtype"] for each in made["columns"]]) == (
            MANY,
            ["number", "number", "text"],
        )
        path = f"/api/v1/datasets/{made['id']}"

        async def numbers(**query: object) -> tuple[int, list[str]]:
            page = (await live.client.get(f"{path}/rows", params={"limit": 2, **query})).json()
            return page["total"], [row[0] for row in page["rows"]]

        assert await numbers() == (MANY, ["0", "1"])
        assert await numbers(offset=500_000) == (MANY, ["500000", "500001"])
        assert await numbers(offset=MANY - 1) == (MANY, ["999999"])
        assert await numbers(offset=MANY) == (MANY, [])
        assert await numbers(desc=True, offset=10) == (MANY, ["999989", "999988"])
        assert await numbers(sort="depth", offset=500_000) == (MANY, ["499999", "499998"])
        assert await numbers(sort="name", desc=True, offset=1_000) == (MANY, ["998", "1998"])
        assert await numbers(filter="well 77", offset=9) == (11_000, ["778", "779"])
        lines = size = 0
        async with live.client.stream("GET", f"{path}/export.csv") as response:
            async for piece in response.aiter_bytes():
                lines, size = lines + piece.count(b"\n"), size + len(piece)
        assert (lines, size) == (MANY + 1, len(b"number,depth,name\r\n") + file["size"] - 18 + MANY)
        assert peak_memory() - before < 60_000_000


CSV = {"Content-Type": "text/csv", "X-Filename": "wells.csv"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatasetStore]:
    opened = DatasetStore(tmp_path / "d.sqlite")
    yield opened
    opened.close()


COLUMNS = [DatasetColumn("n", "number"), DatasetColumn("name")]


def rows_of(count: int) -> Iterator[tuple[Cell, ...]]:
    return ((str(at), f"well {at % 7}") for at in range(count))


@pytest.mark.slow
def test_the_pages_of_an_order_cost_little_once_it_is_known(store: DatasetStore) -> None:
    table = store.create("wells", COLUMNS, rows_of(MANY))
    for order in (Order(), Order(desc=True), Order(sort="name", desc=True), Order(words="5", sort="n")):
        store.page(table.id, order, offset=0, limit=100)
        began = time.process_time()
        for offset in range(0, 400_000, 4_000):
            assert len(store.page(table.id, order, offset=offset, limit=100).rows) == 100
        assert (time.process_time() - began) / 100 < 0.02  # seconds; a scan of the table takes ten times that


def test_only_the_orders_asked_for_last_are_kept_and_those_of_a_deleted_table_go(store: DatasetStore) -> None:
    table, other = (store.create(name, COLUMNS, rows_of(20)) for name in ("wells", "more wells"))
    for _ in range(2):
        for at in range(MAX_ARRANGED + 2):
            page = store.page(table.id, Order(words=f"well {at}", sort="n"), offset=1, limit=9)
            assert (page.total, page.rows[0]) == (len(range(at, 20, 7)), (str(at + 7), f"well {at}"))
    assert store.page(other.id, Order(sort="n", desc=True), offset=0, limit=1).rows == [("19", "well 5")]
    store.delete(table.id)
    with pytest.raises(ProblemError):
        store.page(table.id, Order(sort="n"), offset=0, limit=1)
    assert store.page(other.id, Order(sort="n", desc=True), offset=1, limit=1).rows == [("18", "well 4")]
