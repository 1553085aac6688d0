"""SkyRL's table of metrics as CSV: the head of a real one, rows that are whole and rows that are cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.keymap import framework_of, key_map
from harness.ingest.readers.skyrl_csv import SkyRlCsv
from tests import DATA
from tests.ingest.readers.cuts import invented, read

FRAGMENTS = DATA / "real_logs" / "skyrl" / "skyrl_async_metrics_fragments.log"
HEAD, ROW = FRAGMENTS.read_bytes().splitlines(keepends=True)[1:3]
READER = SkyRlCsv()
SMALL = b"log_file,async/staleness_mean,timing/step,timing/sync_weights,policy/final_loss,trainer/global_step\n"


def test_the_head_of_a_real_table() -> None:
    assert READER.recognises(HEAD + ROW, "metrics_table.csv") is not None
    names = HEAD.decode().strip().split(",")
    assert [name for name in names if key_map("skyrl").meaning(name) is None] == ["log_file"]
    assert framework_of(names) == "skyrl"
    (block,), warnings = read(READER, HEAD + ROW)
    assert block.scope == "job_a"
    assert (block.values["generate/avg_num_tokens"], block.values["generate/max_num_tokens"]) == (3837.043, 11791)
    assert block.values["loss/avg_final_rewards"] == 0.0098
    assert "loss/avg_raw_advantages" not in block.values  # -0.003 is where the index cut the row
    assert [line for line, _ in warnings] == [2]


def test_a_row_a_step_of_its_run() -> None:
    found, warnings = read(READER, SMALL + b'a,0.5,100,7.5,-1e-05,3\n"b, c",,90,nan,0.5,1\r\n')
    assert [(block.step, block.scope) for block in found] == [(3, "a"), (1, "b, c")]
    assert "async/staleness_mean" not in found[1].values
    assert warnings == []


@pytest.mark.parametrize(
    "head", [b"", b"step,loss\n1,2\n", b"a/b,c/d\n", b"async/,async/x,async/y,async/z,async/w\n", b"\xff\xfe,\x00\n"]
)
def test_another_table_is_not_its(head: bytes) -> None:
    assert READER.recognises(head, "x.csv") is None


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    read(READER, SMALL + rubbish)


@settings(max_examples=40)
@given(st.integers(0, len(SMALL) + 60))
def test_a_table_that_ends_anywhere_invents_nothing(at: int) -> None:
    rows = SMALL + b"a,0.5,100.25,7.5,-1.5e-05,13\na,1.5,101.75,7.25,2.5,14\n"
    assert list(invented(READER, rows, at)) == []
