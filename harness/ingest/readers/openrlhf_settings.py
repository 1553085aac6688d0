"""The settings that OpenRLHF prints when it starts, since 0.10: `namespace(..., actor=namespace(...), ...)`."""

import re

BEGIN, OWN_GROUP = b"namespace(", b" actor=namespace("
ITEM = re.compile(
    r"\b(?P<group>\w{1,100})=namespace\(|\b(?P<key>\w{1,100})=(?P<value>(?:'(?:[^'\\]|\\.){0,4000}'|"
    r"\[[^\]]{0,2000}\]|\([^)]{0,2000}\)|[^,()\[\]']){0,4000})|(?P<end>\))"
)
MOST_GROUPS, MOST_SETTINGS = 8, 2000
SECRETS = ("key", "token", "password", "secret")


def settings_of(text: str) -> dict[str, str]:
    """By name and group, `rollout.batch_size`, as written. What is named like a secret is left out."""
    groups: list[str] = []
    settings: dict[str, str] = {}
    for item in ITEM.finditer(text.removeprefix(BEGIN.decode())):
        if len(groups) > MOST_GROUPS or len(settings) > MOST_SETTINGS:
            break
        if item["group"]:
            groups.append(item["group"])
        elif item["end"]:
            del groups[-1:]
        elif item["key"] not in SECRETS:
            settings[".".join([*groups, item["key"]])] = item["value"]
    return settings
