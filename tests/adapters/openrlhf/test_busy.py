from adapters.openrlhf.busy import BusyStage
from tests.adapters.openrlhf.probes import KeepingProbe


def test_requests_that_overlap_are_one_span_with_what_all_of_them_did() -> None:
    probe = KeepingProbe()
    stage = BusyStage(probe, "generate")
    stage.enter("gen-0", records=1, input_tokens=3)
    stage.enter("gen-0", records=1, input_tokens=4)
    stage.count(output_tokens=5)
    stage.leave()
    assert probe.spans == []
    stage.leave()
    (span,) = probe.spans
    assert (span["records"], span["input_tokens"], span["output_tokens"]) == (2, 7, 5)


def test_a_pause_is_none_of_its_time() -> None:
    probe = KeepingProbe()
    stage = BusyStage(probe, "generate")
    stage.enter("gen-0", records=1)
    stage.count(output_tokens=2)
    stage.pause()
    stage.resume()
    stage.count(output_tokens=1)
    stage.leave()
    assert [span["output_tokens"] for span in probe.spans] == [2, 1]
    assert probe.spans[0]["t"][1] <= probe.spans[1]["t"][0]


def test_a_pause_with_nobody_in_it_leaves_no_span() -> None:
    probe = KeepingProbe()
    stage = BusyStage(probe, "generate")
    stage.pause()
    stage.resume()
    assert probe.spans == []


def test_the_next_batch_has_a_span_of_its_own() -> None:
    probe = KeepingProbe()
    stage = BusyStage(probe, "generate")
    stage.enter("gen-0", records=1)
    stage.enter("gen-1", records=1)
    stage.leave()
    stage.leave()
    assert [(span["trace_id"], span["records"]) for span in probe.spans] == [("gen-0", 1), ("gen-1", 1)]
