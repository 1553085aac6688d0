from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.contract import read_cell
from harness.errors import UserError
from harness.report.trace import draw, render_trace, trace_object
from tests.report.reports import HOSTILE
from tests.report.runs import cell, make_run

SAMPLE = "p0.b0.g1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cells = [cell(name, repeat) for repeat in range(2) for name in ("reference", "trl")]
    return make_run(tmp_path, cells)


def test_the_chain_is_whole(run: Path) -> None:
    found = trace_object(run, SAMPLE)
    assert [(chain["adapter"], chain["repeat"]) for chain in found["chains"]] == [("reference", 0), ("trl", 0)]
    chain = found["chains"][0]
    assert chain["prompt"]["prompt_id"] == "p0"
    assert chain["rollout"]["sample_id"] == SAMPLE
    assert chain["rollout"]["policy_tokens"] == len(chain["rollout"]["tokens"])
    assert chain["behavior"]["policy_version"] == 0
    assert chain["verifier"] | {"start_s": None, "end_s": None} == {
        "verifier_version": "v1",
        "reward": {"correctness": 1.0},
        "reward_total": 1.0,
        "start_s": None,
        "end_s": None,
    }
    (step,) = chain["trained"]
    assert (step["batch_id"], step["step"], step["lag_updates"]) == ("batch-0-mb-0", 0, 0)
    assert (step["policy_version"], step["resulting_policy_version"], step["published_as"]) == (0, 1, None)
    assert step["mean_log_ratio"] == 0.0
    assert chain["fate"]["fate"] == "trained"


def test_one_cell_by_name(run: Path) -> None:
    found = trace_object(run, SAMPLE, "trl.colocated_sync.free.r1")
    assert [chain["cell_id"] for chain in found["chains"]] == ["trl.colocated_sync.free.r1"]


def test_the_picture_names_every_link_in_its_order(run: Path) -> None:
    text = render_trace(run, SAMPLE, "trl.colocated_sync.free.r0")
    links = ["p0", SAMPLE, "version 0", "v1", "batch-0-mb-0", "optimizer step", "0 -> 1", "trained"]
    places = [text.index(link) for link in links]
    assert places == sorted(places)
    assert "8:-0.500  9:-0.250  10:-1.000  1:-0.125" in text


def test_what_is_not_there_is_said(run: Path) -> None:
    with pytest.raises(UserError, match=r"no ledger .* sample p9; one that is there: p0.b0.g0"):
        trace_object(run, "p9")
    with pytest.raises(UserError, match=r"has no cell x; it has reference"):
        trace_object(run, SAMPLE, "x")


def test_hostile_text_is_one_harmless_line(tmp_path: Path) -> None:
    run = make_run(tmp_path, [cell("trl")], rollout={"text": HOSTILE + "\n\x1b[31m"})
    text = render_trace(run, SAMPLE)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_age_counts_to_the_first_forward_pass_whatever_the_framework_calls_its_step(run: Path) -> None:
    ledger = read_cell(run / "ledger", "trl.colocated_sync.free.r0")
    path = ledger.path("trained")
    table = pq.read_table(path)
    early = pa.array([t - 15 for t in table["t_step_start"].to_pylist()], pa.int64())
    pq.write_table(table.set_column(table.schema.get_field_index("t_step_start"), "t_step_start", early), path)
    (step,) = trace_object(run, SAMPLE, "trl.colocated_sync.free.r0")["chains"][0]["trained"]
    assert step["age_s"] == 0.0
    assert step["start_s"] == pytest.approx(10e-9)


def test_observed_tokens_are_told_from_sampled_ones(run: Path) -> None:
    (chain, *_) = trace_object(run, SAMPLE)["chains"]
    assert "observed" not in "\n".join(draw(chain))
    chain["rollout"]["policy_tokens"] -= 1
    assert "tokens, 1 of them observed" in "\n".join(draw(chain))
