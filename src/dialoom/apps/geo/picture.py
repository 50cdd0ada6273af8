"""Pictures of points and grids as PNG, written with zlib alone."""

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from dialoom.apps.geo.points import Floats

Pixels = npt.NDArray[np.uint8]
_MAGIC: Final = b"\x89PNG\r\n\x1a\n"
# Five stops of a map that grows evenly lighter, readable in grey and by colour-blind people.
_STOPS = np.array(
    [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=np.float64
)
MAX_SIDE: Final = 1_000
THUMBNAIL: Final = 320


def png(pixels: Pixels) -> bytes:
    """Return a picture of `pixels`: rows from the top, each pixel red, green, blue and opacity."""
    height, width = pixels.shape[:2]
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, width * 4)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"".join(
        (
            _MAGIC,
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
            _chunk(b"IEND", b""),
        )
    )


def map_of(grid: Floats) -> bytes:
    """Return a picture of a grid whose first row is the southern one; nodes without a value are clear."""
    step = max(1, -(-max(grid.shape) // MAX_SIDE))
    return png(_coloured(grid[::step, ::step][::-1]))


def scatter(points: Floats) -> bytes:
    """Return a small picture of where points are, coloured by z."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    scale = (THUMBNAIL - 7) / max(float(size[0]), float(size[1]))
    column = ((points[:, 0] - low[0]) * scale).astype(np.int64) + 3
    row = ((high[1] - points[:, 1]) * scale).astype(np.int64) + 3
    height, width = int(size[1] * scale) + 7, int(size[0] * scale) + 7
    values = np.full((height, width), np.nan)
    for across in (-1, 0, 1):
        for down in (-1, 0, 1):
            values[row + down, column + across] = points[:, 2]
    return png(_coloured(values))


def _coloured(values: Floats) -> Pixels:
    known = np.isfinite(values)
    pixels = np.zeros((*values.shape, 4), dtype=np.uint8)
    if known.any():
        low, high = float(values[known].min()), float(values[known].max())
        place = (values[known] - low) / (high - low or 1.0) * (len(_STOPS) - 1)
        stops = np.arange(len(_STOPS))
        colours = [np.interp(place, stops, _STOPS[:, at]) for at in range(3)]
        pixels[known, :3] = np.stack(colours, axis=1).astype(np.uint8)
        pixels[known, 3] = 255
    return pixels


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
