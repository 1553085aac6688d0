"""Profiles of what is simulated: a file of settings, with words on top, and its named overlaps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.errors import UserError
from harness.simulate.reading import build, nearest
from harness.simulate.settings import Settings

FOLDER = Path(__file__).parent / "profiles"


def settings_of(words: Sequence[str]) -> list[Settings]:
    """The settings that the words ask for, one for each overlap of `overlap=shallow,deep` (default: every one that the
    profile has, or its own settings where it has none).

    `profile=` is a name of `harness/simulate/profiles`, or a file; every other word is a setting, as
    `rollout.replicas=16` or `response_tokens={name:pareto,least:32,tail:1.5}`.

    Raises:
        UserError: names the setting that is wrong.
    """
    content, overlaps, given = _asked(words)
    return [_settings(content, overlap, name, given) for name, overlap in overlaps.items()]


def overlaps_of(words: Sequence[str]) -> list[str]:
    """The names of the overlaps that the words ask for; of a profile that has none, the empty one.

    Raises:
        UserError: as `settings_of`.
    """
    return list(_asked(words)[1])


def _asked(words: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """The profile's own settings, what each overlap changes, and the words that are neither."""
    split = [word.partition("=") for word in words]
    if bad := [key for key, equals, _ in split if not equals]:
        raise UserError(f"'{bad[0]}' is not a setting: write key=value, e.g. seconds=60")
    given = {key: value for key, _, value in split}
    content = _read(given.pop("profile", "smoke"))
    overlaps: dict[str, Any] = content.pop("overlaps", None) or {"": {}}
    wanted = given.pop("overlap", ",".join(overlaps)).split(",")
    if unknown := [name for name in wanted if name not in overlaps]:
        raise UserError(f"overlap={unknown[0]}: the profile has no such overlap{nearest(unknown[0], list(overlaps))}")
    return content, {name: overlaps[name] for name in wanted}, given


def _settings(content: dict[str, Any], overlap: dict[str, Any], name: str, words: dict[str, str]) -> Settings:
    try:
        merged = OmegaConf.merge(OmegaConf.create(content), OmegaConf.create(overlap))
        for key, value in words.items():
            OmegaConf.update(merged, key, OmegaConf.create({"v": yaml.safe_load(value)}).v, merge=False)
        plain = OmegaConf.to_container(merged, resolve=True)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise UserError(f"the settings cannot be read: {str(error).splitlines()[0]}") from error
    assert isinstance(plain, dict)
    return build(Settings, plain | ({"name": name} if name else {}))


def _read(profile: str) -> dict[str, Any]:
    path = FOLDER / f"{profile}.yaml"
    if not path.exists():
        path = Path(profile)
    if not path.is_file():
        known = sorted(file.stem for file in FOLDER.glob("*.yaml"))
        raise UserError(f"profile={profile}: no such profile or file{nearest(profile, known)}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected settings, a key a line")
    return content
