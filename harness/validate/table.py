"""The published rows, and which of them may be used."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness.audit.rule import Finding, findings
from harness.audit.rules import RULES
from harness.audit.tables import cases_of_rows
from harness.validate.outcome import Refused

FILE = Path(__file__).parent / "published.yaml"
STAGES = ("gen", "old_log_prob", "ref", "update_actor", "weight_sync", "other", "checkpoint", "validation")
"""Of a row, in the order in which a synchronous step goes through them."""


@dataclass(frozen=True)
class Row:
    """A published row. `wrong` is why its numbers cannot all be, by a rule of the audit; `suspect` what is odd."""

    name: str
    source: str
    values: Mapping[str, Any]
    wrong: str = ""
    suspect: str = ""

    def need(self, key: str) -> float:
        """A number of the row.

        Raises:
            Refused: the row contradicts itself, or the number was not printed.
        """
        self.must_be_sound()
        if self.values.get(key) is None:
            raise Refused(f"no `{key}` is printed")
        return float(self.values[key])

    def must_be_sound(self) -> None:
        """Raises Refused where the row contradicts itself."""
        if self.wrong:
            raise Refused(self.wrong)

    def stages(self) -> dict[str, float]:
        """The seconds of its printed stages, without the trainer's wait.

        Raises:
            Refused: the row contradicts itself, or printed none.
        """
        self.must_be_sound()
        found = {stage: float(self.values[stage]) for stage in STAGES if self.values.get(stage) is not None}
        if not found:
            raise Refused("no stage is printed")
        return found

    @property
    def training(self) -> float:
        """`T`: all stages but the rollout."""
        return sum(seconds for stage, seconds in self.stages().items() if stage != "gen")


@dataclass(frozen=True)
class Published:
    """All rows: `stages` by name, `nemo` in the order of its page; `splits` and `gains` are what was claimed."""

    sources: Mapping[str, Mapping[str, str]]
    stages: Mapping[str, Row]
    nemo: list[Row]
    splits: list[Mapping[str, Any]]
    gains: list[Mapping[str, Any]]


@cache
def published() -> Published:
    """What `published.yaml` holds, each row asked by every rule of the audit."""
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    listed = [dict(zip(content["nemo"]["columns"], values, strict=True)) for values in content["nemo"]["rows"]]
    nemo = [row | {"id": f"{row['id']}, {row['policy']}, {row['gpus']} GPUs", "system": row["id"]} for row in listed]
    stages = {row.name: row for row in _rows(content["stages"])}
    return Published(content["sources"], stages, _rows(nemo, "nemo"), content["splits"], content["gains"])


def _rows(rows: list[dict[str, Any]], source: str = "") -> list[Row]:
    found: dict[str, list[Finding]] = {}
    for case in cases_of_rows(rows, FILE.name):
        found.setdefault(case.name, []).extend(findings(case, RULES))
    out = []
    for row in rows:
        of_row = found.get(row["id"], [])
        wrong = [f"{one.evidence} (`{one.rule}`)" for one in of_row if one.severity != "suspect"]
        suspect = [one.evidence for one in of_row if one.severity == "suspect"]
        out.append(Row(row["id"], row.get("source", source), row, "; ".join(wrong), "; ".join(suspect)))
    return out
