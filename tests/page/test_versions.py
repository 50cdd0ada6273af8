"""Versions of a talk, whatever is regenerated and edited in which order: as a model of the tree says."""

import random
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, expect

from dialoom.llm import ProviderError
from tests.page.stage import Stage, ask, conversation_id

pytestmark = pytest.mark.slow

Log = tuple[str, ...]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_title_that_is_cut_off_keeps_the_number_of_its_version(
    page: Page, stage: Stage, width: int
) -> None:
    title = " ".join(["Where does a parcel go that nobody was at home to take in?"] * 4)
    known = stage.conversation(title=f"{title} (12)")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{stage.url}/c/{known}")
    if width < 860:
        page.click("button[aria-label=Conversations]")
    for place in (".row.chosen", ".title"):
        name = page.locator(f"{place} .name")
        expect(name).to_have_text(f"{title} (12)")
        words, number = name.locator(".words"), name.locator("span").last
        assert words.evaluate("(each) => each.scrollWidth > each.clientWidth")  # cut off
        expect(number).to_have_text("(12)")
        inner, outer = number.bounding_box(), page.locator(place).bounding_box()
        assert inner is not None
        assert outer is not None
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]


@dataclass
class Tree:
    """Every version that was made, oldest first; which parts there are is told from their texts alone."""

    versions: dict[str, Log] = field(default_factory=dict)

    def siblings(self, log: Log, index: int) -> list[str]:
        """Return what stands at `index` in the versions that are the same before it, oldest first."""
        same = (each for each in self.versions.values() if each[:index] == log[:index] and len(each) > index)
        return list(dict.fromkeys(each[index] for each in same))

    def arrows(self, log: Log) -> list[str]:
        """Return the words of the arrows that a version shows, from the top."""
        found = ((self.siblings(log, at), log[at]) for at in range(len(log)))
        return [f"{all_.index(own) + 1}/{len(all_)}" for all_, own in found if len(all_) > 1]


class Hand:
    """A person who does one thing after the other in the page, and a model that does the same."""

    def __init__(self, page: Page, stage: Stage, seed: int) -> None:
        self.page, self.stage = page, stage
        self.choose = random.Random(seed)
        self.tree = Tree()
        self.count = 0
        self.log: Log = ()

    def words(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count}"

    def step(self) -> str:
        doings = [self.say, self.regenerate, self.regenerate, self.edit, self.edit, self.turn, self.turn]
        doing = self.choose.choice([*doings, self.reload, self.fail])
        doing()
        return doing.__name__

    def say(self) -> None:
        asked, answer = self.words("question"), self.words("answer")
        self.stage.says(answer)
        ask(self.page, asked)
        self.stands((*self.log, asked, answer))

    def regenerate(self) -> None:
        answer = self.words("answer")
        self.stage.says(answer)
        self.page.hover(".entry.assistant >> nth=-1")
        self.page.click("button[aria-label='Answer again']")
        self.stands((*self.log[:-1], answer))

    def edit(self) -> None:
        at = self.choose.randrange(0, len(self.log), 2)
        asked, answer = self.words("question"), self.words("answer")
        self.stage.says(answer)
        said = self.page.locator(f".entry[data-index='{at}']")
        said.hover()
        said.locator(".edit-message").click()
        self.page.fill(".editing textarea", asked)
        self.page.click("text=Send again")
        self.stands((*self.log[:at], asked, answer))

    def fail(self) -> None:
        """Have an answer fail, and try again: what failed leaves nothing that is in the way."""
        self.stage.provider.queue_error(ProviderError("overloaded", "busy", retryable=False))
        asked, answer = self.words("question"), self.words("answer")
        ask(self.page, asked)
        expect(self.page.locator(".failure")).to_be_visible()
        self.stage.says(answer)
        self.page.click(".failure >> text=Try again")
        self.stands((*self.log, asked, answer))

    def reload(self) -> None:
        self.page.reload()
        self.stands(self.log)

    def turn(self) -> None:
        """Press one of the arrows there are, when there is one."""
        arrows = self.page.locator(".branches button:enabled")
        if arrows.count() == 0:
            return
        arrow = arrows.nth(self.choose.randrange(arrows.count()))
        back = "branch-before" in (arrow.get_attribute("class") or "")
        index = int(str(arrow.locator("xpath=ancestor::article").get_attribute("data-index")))
        siblings = self.tree.siblings(self.log, index)
        wanted = siblings[siblings.index(self.log[index]) + (-1 if back else 1)]
        before = self.page.url
        arrow.click()
        expect(self.page).not_to_have_url(before)
        expect(self.page.locator(f".entry[data-index='{index}']")).to_contain_text(wanted)
        found = self.tree.versions[conversation_id(self.page)]
        assert found[: index + 1] == (*self.log[:index], wanted)
        self.stands(found)

    def stands(self, log: Log) -> None:
        """See that the page shows this version, with the arrows that the model has for it."""
        shown = self.page.locator(".entry:not(.live) > .bubble, .entry:not(.live) .text")
        expect(shown).to_have_text(list(log))
        self.log = log
        self.tree.versions[conversation_id(self.page)] = log
        expect(self.page.locator(".branches")).to_have_text(self.tree.arrows(log))
        expect(self.page.locator(".row")).to_have_count(len(self.tree.versions))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_regenerated_and_edited_in_any_order_stands_where_the_model_has_it(
    page: Page, stage: Stage, seed: int
) -> None:
    hand = Hand(page, stage, seed)
    hand.say()
    done = [hand.step() for _ in range(16)]
    for known, log in hand.tree.versions.items():  # nothing that was said is lost, in no version
        assert tuple(entry.content for entry in stage.entries(known)) == log, done  # pyright: ignore[reportAttributeAccessIssue] - texts
