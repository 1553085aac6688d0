"""What the barrier loop does with a publication that is refused."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.reference.loop import Loop, Parts


@pytest.mark.parametrize(("refusals", "tries"), [(0, 1), (1, 2), (5, 2)])
def test_a_refused_publication_is_tried_once_more(refusals: int, tries: int) -> None:
    tried: list[str] = []

    def publish() -> Any:
        tried.append("a replica holds other bytes" if len(tried) < refusals else "")
        return SimpleNamespace(refused=tried[-1])

    parts = cast(Parts, SimpleNamespace(publisher=SimpleNamespace(publish=publish)))
    Loop(cast(Any, None), parts, cast(Any, None))._publish()
    assert len(tried) == tries
