"""Lengths and durations that were measured: from a list, a file, or a cell's ledger."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from harness.contract import CellLedger, read_cell
from harness.contract.schema import STAGES
from harness.errors import UserError
from harness.simulate.reading import nearest, number

LENGTHS = ("prompt_tokens", "response_tokens")
VERDICT = "verdict"
"""Seconds that the verifier took for one completion."""
SOURCES = ("values", "file", "run")


def read_measured(given: Mapping[str, Any], where: str) -> npt.NDArray[np.float64]:
    """What `{name: measured, ...}` names: `values: [...]`; `file:` with one number a line; or `run:` a run folder, with
    `cell:` and `of:`, which is `prompt_tokens`, `response_tokens`, `verdict` (seconds of one) or a stage (seconds of
    its spans).

    Raises:
        UserError: names what is wrong, or what the ledger does not hold.
    """
    if len([key for key in SOURCES if given.get(key) is not None]) != 1:
        raise UserError(f"{where}: a measured distribution needs one of {', '.join(SOURCES)}")
    if given.get("run") is not None:
        return _of_ledger(given, where)
    values = given.get("values")
    if values is None:
        try:
            values = Path(given["file"]).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{where}.file={given['file']}: {str(error).splitlines()[0]}") from error
    if not isinstance(values, list) or not values:
        raise UserError(f"{where}: there are no measured values")
    return np.array([number(value, f"{where}.values") for value in values], dtype=np.float64)


def _of_ledger(given: Mapping[str, Any], where: str) -> npt.NDArray[np.float64]:
    folder, cell, of = (str(given.get(key) or "") for key in ("run", "cell", "of"))
    known = [*LENGTHS, VERDICT, *STAGES]
    if of not in known:
        raise UserError(f"{where}.of={of}: a ledger measures no such thing{nearest(of, known)}")
    try:
        found = _values(read_cell(Path(folder) / "ledger", cell), of)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    if not len(found):
        raise UserError(f"{where}: the ledger of {cell} holds no {of}: it cannot be simulated from it")
    return found


def _values(ledger: CellLedger, of: str) -> npt.NDArray[np.float64]:
    if of in LENGTHS:
        found = pc.list_value_length(ledger.table("rollouts", [of])[of])
    elif of == VERDICT:
        table = ledger.table("rollouts", ["t_verify_start", "t_verify_end"])
        found = pc.divide(pc.subtract(table["t_verify_end"], table["t_verify_start"]).cast("float64"), 1e9)
    else:
        table = ledger.table("spans", ["stage", "t_start", "t_end"])
        table = table.filter(pc.equal(table["stage"], of))
        found = pc.divide(pc.subtract(table["t_end"], table["t_start"]).cast("float64"), 1e9)
    values: npt.NDArray[np.float64] = (
        pc.drop_null(found).cast("float64").combine_chunks().to_numpy(zero_copy_only=False)
    )
    return values
