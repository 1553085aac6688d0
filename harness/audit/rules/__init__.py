"""Every rule of the audit; each file holds the rules of one subject."""

from harness.audit.rule import Rule
from harness.audit.rules import bounds, time

RULES: tuple[Rule, ...] = (*time.register.rules, *bounds.register.rules)
