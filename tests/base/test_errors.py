"""Errors say what happened in words for people and in a code for programs."""

import pytest

import dialoom
from dialoom.base.errors import ConflictError, DialoomError, MissingExtraError, StoreError, UsageError


def test_every_error_is_a_dialoom_error_with_a_stable_code() -> None:
    codes = {
        kind: kind.code for kind in (DialoomError, UsageError, StoreError, ConflictError, MissingExtraError)
    }
    assert list(codes.values()) == ["error", "usage", "store", "conflict", "missing_extra"]
    assert all(issubclass(kind, DialoomError) for kind in codes)


def test_a_missing_package_answers_with_the_line_that_installs_it() -> None:
    error = MissingExtraError("numpy", "rag")
    assert str(error) == 'numpy is not installed; run: pip install "dialoom[rag]"'
    assert isinstance(error, ImportError)


def test_the_package_hands_out_its_names_on_first_use() -> None:
    assert dialoom.DialoomError is DialoomError
    assert "DialoomError" in dir(dialoom)
    with pytest.raises(AttributeError, match="has no name 'nonsense'"):
        dialoom.nonsense  # noqa: B018 - the access is the test


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(dialoom, name) is not None for name in dialoom.__all__)
