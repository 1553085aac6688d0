import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.site.scripts import script

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.text(), PLAIN)
def test_what_goes_in_comes_out_and_nothing_ends_the_script(name: str, content: object) -> None:
    text = script(name, content)
    assert not set("<>&\u2028\u2029") & set(text)
    taken = json.loads(f"[{text.removeprefix('rlaxes.take(').removesuffix(');' + chr(10))}]")
    assert taken == [name, content]


def test_the_end_of_a_script_within_the_data() -> None:
    text = script("x", {"said": "</script><script>alert(1)</script><!--"})
    assert "</script" not in text
    assert "<!--" not in text


def test_an_infinite_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script("x", float("inf"))
