"""Calls on data sets: made from an uploaded file, paged, exported."""

import asyncio
from typing import Annotated

import msgspec
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from dialoom.server.dataset_store import Cell, Dataset, DatasetColumn, DatasetStore, Order
from dialoom.server.delimited import csv_pieces, find_layout, table_rows
from dialoom.server.files import FileStore, disposition
from dialoom.server.routes import AnyRoute, Call, Nothing, Route


class NewDataset(msgspec.Struct, frozen=True, rename="camel"):
    """An uploaded file of delimited text, whose first row names the columns."""

    file_id: str
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""


class RowsQuery(msgspec.Struct, frozen=True):
    """Which rows: `filter` has words one of the cells holds, `sort` is a column, downwards with `desc`."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    sort: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    desc: bool = False
    filter: Annotated[str, msgspec.Meta(max_length=200)] = ""


class DatasetRows(msgspec.Struct, frozen=True):
    """Rows of the `total` that were asked for."""

    total: int
    columns: list[DatasetColumn]
    rows: list[tuple[Cell, ...]]


class ExportQuery(msgspec.Struct, frozen=True):
    """`bom` begins the file with the mark some spreadsheets need to read it as UTF-8."""

    bom: bool = False


class Datasets:
    """Serves what a `DatasetStore` has."""

    def __init__(self, store: DatasetStore, files: FileStore) -> None:
        self._store = store
        self._files = files

    def routes(self) -> list[AnyRoute]:
        one = "/api/v1/datasets/{id}"
        return [
            Route(
                "POST", "/api/v1/datasets", self.create, body=NewDataset, answer=Dataset, status=201,
                summary="Make a data set of an uploaded CSV or TSV file",
            ),
            Route("GET", one, self.show, answer=Dataset, summary="Show a data set's columns and size"),
            Route("DELETE", one, self.delete, summary="Delete a data set"),
            Route(
                "GET", one + "/rows", self.rows, query=RowsQuery, answer=DatasetRows,
                summary="Read a page of rows, sorted and filtered",
            ),
            Route(
                "GET", one + "/export.csv", self.export, query=ExportQuery, media="text/csv",
                summary="Export all rows as CSV",
            ),
        ]  # fmt: skip

    async def create(self, call: Call[Nothing, NewDataset]) -> Dataset:
        info = await asyncio.to_thread(self._files.find, call.body.file_id)
        path = self._files.path(info.id)

        def create() -> Dataset:
            layout = find_layout(path)
            return self._store.create(call.body.name or info.name, layout.columns, table_rows(path, layout))

        return await asyncio.to_thread(create)

    async def show(self, call: Call[Nothing, Nothing]) -> Dataset:
        return await asyncio.to_thread(self._store.find, call.id())

    async def delete(self, call: Call[Nothing, Nothing]) -> None:
        await asyncio.to_thread(self._store.delete, call.id())

    async def rows(self, call: Call[RowsQuery, Nothing]) -> DatasetRows:
        query, dataset_id = call.query, call.id()
        order = Order(query.filter, query.sort, query.desc)

        def read() -> DatasetRows:
            page = self._store.page(dataset_id, order, offset=query.offset, limit=query.limit)
            return DatasetRows(page.total, self._store.find(dataset_id).columns, page.rows)

        return await asyncio.to_thread(read)

    async def export(self, call: Call[ExportQuery, Nothing]) -> Response:
        dataset = await asyncio.to_thread(self._store.find, call.id())
        names = [column.name for column in dataset.columns]
        pieces = csv_pieces(names, self._store.all_rows(dataset.id), bom=call.query.bom)
        headers = disposition(f"{dataset.name.removesuffix('.csv')}.csv")
        return StreamingResponse(iterate_in_threadpool(pieces), headers=headers, media_type="text/csv")
