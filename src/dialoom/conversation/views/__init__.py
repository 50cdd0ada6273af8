"""Pure views of a conversation's entries: what people see, and what a model reads."""

from dialoom.conversation.views.prompt import PromptLimits as PromptLimits
from dialoom.conversation.views.prompt import prompt as prompt
from dialoom.conversation.views.screen import Screen as Screen
from dialoom.conversation.views.screen import Shown as Shown
from dialoom.conversation.views.screen import ShownCard as ShownCard
from dialoom.conversation.views.screen import ShownText as ShownText
from dialoom.conversation.views.screen import screen as screen
