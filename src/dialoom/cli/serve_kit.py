"""A person's own skills and prompts, offered in the workbench as in the terminal."""

from dialoom.cli.chat_center import CENTER_FILE
from dialoom.cli.mcp_servers import user_folder
from dialoom.dialog import Center, Kit
from dialoom.dialog.json_file import read_json
from dialoom.dialog.kit_codec import kit_from_dict


def own_kit() -> Kit:
    """Return what the person's own settings file holds, an empty kit without one.

    Raises `StoreError` for a file that cannot be read, `UsageError` for one that is no kit.
    """
    return kit_from_dict(read_json(user_folder() / CENTER_FILE))


def add_kit(center: Center, kit: Kit) -> None:
    """Offer a kit's skills and prompts; its tool servers take --server, as others may reach a server."""
    for skill in kit.skills.values():
        center.add_skill(skill)
    for prompt in kit.prompts.values():
        center.add_prompt(prompt)
