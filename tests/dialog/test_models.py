"""Who answers: the provider and the model that were chosen, or the first that can do what is required."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.dialog import Center, NoUsableModelError
from dialoom.dialog.model_choice import pick_model
from dialoom.dialog.settings import capability_names, capability_of
from dialoom.llm import Capability, MockProvider, Model, ProviderError
from tests.dialog.talk import finished, soon

SEES = Capability.TEXT | Capability.IMAGE_IN
MODELS = (
    Model(id="plain", provider="a"),
    Model(id="sees", provider="a", capabilities=SEES),
    Model(id="hears", provider="a", capabilities=Capability.TEXT | Capability.AUDIO_IN),
)
ELSEWHERE = "(it has plain, sees, hears); choose another provider or require less"


class Listing(MockProvider):
    """A mock that lists what it is told to, and counts how often it is asked."""

    def __init__(self, id: str = "listing") -> None:  # noqa: A002 - a provider's word for its name
        super().__init__(id=id)
        self.offers: tuple[Model, ...] = MODELS
        self.listed = 0
        self.fails = False

    async def models(self) -> tuple[Model, ...]:
        self.listed += 1
        if self.fails:
            raise ProviderError("connection", "no server answers at listing; start it")
        return self.offers


@pytest.mark.promise("dialog-089", "dialog-090", "dialog-091")
async def test_the_chosen_provider_answers_and_without_one_the_default() -> None:
    first, second = MockProvider(id="first"), MockProvider(id="second").queue_text("b").queue_text("c")
    center = Center().add_provider(first).add_provider(second, default=True)
    dialog = center.new_dialog()
    assert dialog.provider_id == ""
    assert (await finished(dialog.send("hi"))).text == "b"
    assert center.default_provider is second
    center.set_default_provider("")
    assert center.default_provider is first
    dialog.set_provider_id("second")
    assert (dialog.provider_id, (await finished(dialog.send("hi"))).text) == ("second", "c")
    center.enable_provider("first", enabled=False)
    assert center.default_provider is second


@pytest.mark.promise(
    "dialog-092", "dialog-093", "dialog-094", "dialog-096", "dialog-097", "dialog-098", "dialog-099"
)
async def test_the_chosen_model_is_asked_and_without_one_the_first_that_can() -> None:
    mock = MockProvider().queue_text("a").queue_text("b").queue_text("c")
    dialog = Center().add_provider(mock, models=MODELS).new_dialog()
    assert (dialog.model_id, dialog.capability_requirement) == ("", Capability.TEXT)
    await finished(dialog.send("hi"))
    dialog.set_capability_requirement(Capability.TEXT | Capability.IMAGE_IN)
    assert dialog.capability_requirement == SEES
    await finished(dialog.send("look"))
    dialog.set_capability_requirement(Capability.TEXT).set_model_id("hears")
    assert dialog.model_id == "hears"
    await finished(dialog.send("listen"))
    assert [request.options.model for request in mock.requests] == ["plain", "sees", "hears"]


@pytest.mark.promise("dialog-095")
async def test_a_chosen_model_that_cannot_be_used_is_replaced_and_that_is_said() -> None:
    mock = MockProvider().queue_text("a")
    dialog = Center().add_provider(mock, models=MODELS).new_dialog(capability_requirement=SEES)
    notices: list[str] = []
    dialog.events.connect(lambda event: notices.append(getattr(event, "message", "")))
    await finished(dialog.set_model_id("plain").send("look"))
    assert mock.requests[0].options.model == "sees"
    assert [each for each in notices if each] == ["model 'plain' cannot be used here; sees answers"]


async def test_a_server_is_asked_for_its_models_once_and_again_for_one_it_had_not() -> None:
    provider = Listing()
    for _ in range(4):
        provider.queue_text("a")
    dialog = Center().add_provider(provider).new_dialog()
    await finished(dialog.send("1"))
    await finished(dialog.send("2"))
    assert provider.listed == 1
    provider.offers = (*MODELS, Model(id="new", provider="a"))
    await finished(dialog.set_model_id("new").send("3"))
    assert (provider.listed, provider.requests[-1].options.model) == (2, "new")
    await finished(dialog.send("4"))
    assert provider.listed == 2


async def test_a_server_that_cannot_list_is_asked_for_the_model_that_was_named() -> None:
    provider = Listing().queue_text("a").queue_text("b")
    provider.fails = True
    dialog = Center().add_provider(provider).new_dialog()
    result = await soon(dialog.send("hi"))
    assert str(result.error) == "no server answers at listing; start it"
    await finished(dialog.set_model_id("mine").resume())
    provider.fails, provider.offers = False, ()
    await finished(dialog.send("again"))
    assert [request.options.model for request in provider.requests] == ["mine", "mine"]


@pytest.mark.parametrize(
    ("models", "required", "why"),
    [
        ((), Capability.TEXT, "the provider offers no model; add one, or choose another provider"),
        (
            MODELS,
            Capability.TEXT | Capability.FILE_IN | Capability.IMAGE_OUT,
            f"no model of the provider can do file_in, image_out {ELSEWHERE}",
        ),
        (
            MODELS,
            Capability.IMAGE_IN | Capability.AUDIO_IN,
            f"no model of the provider can do all of image_in, audio_in together {ELSEWHERE}",
        ),
    ],
)
def test_a_requirement_that_no_model_meets_is_named(
    models: tuple[Model, ...], required: Capability, why: str
) -> None:
    with pytest.raises(NoUsableModelError) as refusal:
        pick_model(models, required)
    assert str(refusal.value) == why


async def test_without_a_usable_provider_a_run_says_which_are_there() -> None:
    center = Center()
    dialog = center.new_dialog()
    assert center.default_provider is None
    none = await soon(dialog.send("hi"))
    assert str(none.error) == "there is no provider to ask; add one to the center with add_provider"
    center.add_provider(MockProvider(id="a"), enabled=False)
    unknown = await soon(dialog.set_provider_id("b").run())
    assert str(unknown.error) == "there is no provider 'b' here; there are: a"
    off = await soon(dialog.set_provider_id("a").run())
    assert str(off.error) == "provider 'a' is switched off; choose another"
    assert isinstance(off.error, NoUsableModelError)


def test_capabilities_have_names_that_can_be_stored() -> None:
    assert capability_names(SEES) == ["text", "image_in"]
    assert capability_of(["text", "image_in"]) == SEES
    with pytest.raises(UsageError, match="there is no capability 'sight'; there are text, image_in"):
        capability_of(["sight"])
