"""Ids are UUIDs of version 7: unique, and in order of age."""

import uuid

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
