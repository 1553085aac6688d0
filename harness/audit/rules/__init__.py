"""Every rule of the audit; each file holds the rules of one subject."""

from harness.audit.rule import Rule
from harness.audit.rules import bounds, claims, counters, learning, rates, time, tokens

RULES: tuple[Rule, ...] = tuple(
    rule for room in (time, rates, bounds, counters, learning, tokens, claims) for rule in room.register.rules
)
