"""The names people give to coordinates, in English and in Chinese."""

from collections.abc import Mapping
from typing import Final

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "x": ("x", "east", "easting", "e", "lon", "long", "longitude", "lng", "utm_x", "x_utm", "coord_x",
          "经度", "东坐标", "横坐标", "东", "x坐标"),
    "y": ("y", "north", "northing", "n", "lat", "latitude", "utm_y", "y_utm", "coord_y",
          "纬度", "北坐标", "纵坐标", "北", "y坐标"),
    "z": ("z", "elev", "elevation", "height", "h", "depth", "alt", "altitude", "value", "val", "thickness",
          "高程", "深度", "海拔", "标高", "厚度", "值", "z坐标", "h高程"),
}  # fmt: skip
"""By axis, in lower case and without units."""
CHINESE: Final = frozenset(
    name for names in SYNONYMS.values() for name in names if len(name) > 1 and not name.isascii()
)
"""The Chinese ones, long enough to tell an encoding by."""
