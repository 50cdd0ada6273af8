"""`dialoom bench --most-cuts`: a number below nothing is refused before anything runs."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.cli.bench import bench


def test_fewer_cuts_than_none_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^--most-cuts is -1; give 0 or more$"):
        bench(["wire"], as_json=False, most_cuts=-1)
