"""What a broken rule leaves behind."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Violation:
    """A rule that does not hold, the table, the place in it, and what was found there."""

    rule: str
    table: str
    where: str
    detail: str

    def as_dict(self) -> dict[str, str]:
        """For `rlaxes check --json`."""
        return asdict(self)
