"""What a center or a dialog refuses; each class is something the caller can decide about."""

from typing import ClassVar

from dialoom.base.errors import DialoomError, UsageError


class RunInProgressError(DialoomError):
    """The dialog is answering. It is one run at a time, and none waits for another."""

    code: ClassVar[str] = "run_in_progress"

    def __init__(self, run_id: str) -> None:
        super().__init__("this dialog is answering; wait for it or cancel it")
        self.run_id = run_id
        """The run that goes on; what was refused is not told under this id."""


class DialogClosedError(UsageError):
    """The dialog was closed or removed, and something still uses it."""

    code: ClassVar[str] = "dialog_closed"


class DialogNotFoundError(UsageError):
    """No open dialog of this center has that id."""

    code: ClassVar[str] = "dialog_not_found"


class NotLoadedError(UsageError):
    """A dialog holds only the end of a long conversation, and more of it is asked for."""

    code: ClassVar[str] = "not_loaded"


class NoUsableModelError(UsageError):
    """No model can answer: there is no provider, or none of its models can do what is required."""

    code: ClassVar[str] = "no_usable_model"


class TurnFailedError(DialoomError):
    """A run gave no whole answer. `reason` is its stop reason, or `internal` for a fault of the program.

    Where the model did not answer it is `provider`, or `auth` for a key that was refused, and the cause of
    the error is the `ProviderError`.
    """

    code: ClassVar[str] = "turn_failed"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class AlreadyAnsweredError(UsageError):
    """A card takes no answer any more; `status` is what became of it."""

    code: ClassVar[str] = "already_answered"

    def __init__(self, what: str, status: str) -> None:
        super().__init__(f"this {what} is {status}; it takes no other answer")
        self.status = status
