"""Ids are UUIDs of version 7: unique, and in order of age."""

import os
import sys
import uuid

import pytest

from dialoom.base.ids import new_id


def test_an_id_is_a_uuid_of_version_7_in_its_usual_text_form() -> None:
    text = new_id()
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (7, uuid.RFC_4122, text)


def test_ids_differ_and_carry_their_moment() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    moments = [text[:13] for text in ids]
    assert moments == sorted(moments)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_hands_out_ids_of_its_own() -> None:
    new_id()  # fetches random digits for the ids to come
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as told:
        theirs = told.read()
    assert uuid.UUID(theirs).version == 7
    assert theirs[14:] != new_id()[14:]
