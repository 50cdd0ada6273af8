"""dialoom: build and run AI conversations. Names load on first use, so importing it costs almost nothing."""

TYPE_CHECKING = False  # checkers know the name; importing typing would cost more than all the rest

if TYPE_CHECKING:
    from dialoom.base.errors import DialoomError as DialoomError

_HOMES = {
    "DialoomError": "dialoom.base.errors",
}

__all__ = ["DialoomError"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"dialoom has no name {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
