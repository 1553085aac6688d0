"""Lives inside a framework's process and writes what happens there through the contract.

Standard library and pyarrow only (torch is used where the framework has already loaded it).
"""

from harness.probe.probe import Probe

__all__ = ["Probe"]
