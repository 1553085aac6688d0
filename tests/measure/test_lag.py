"""Lag in updates, in publications and in seconds, on loops of known age."""

from pathlib import Path

import pytest

from harness.measure.api import measure_cell
from tests.fakes import context, fake_ledger, figures, view
from tests.measure.loops import figures as loop_figures
from tests.measure.loops import loop_cell

BATCH_MS, GAP_MS = 40.0, 1.0


def test_one_update_a_batch_has_no_lag(tmp_path: Path) -> None:
    found = figures(tmp_path)
    assert [found[f"lag_{q}"].value for q in ("p50", "p95", "max")] == [0, 0, 0]
    assert found["lag_p50"].n == 128
    assert found["lag_coverage"].value == 1


def test_several_updates_a_batch_age_its_records(tmp_path: Path) -> None:
    """minibatches=2, inner_epochs=2: updates 0, 1, 2, 3 of a batch, each half of it twice: lag 0..3 in equal parts."""
    task = {"minibatches": 2, "inner_epochs": 2, "steps": 12, "warmup_steps": 4}
    found = figures(tmp_path, task)
    assert found["warmup_steps_dropped"].value == 4
    assert [found[f"lag_{q}"].value for q in ("p50", "p95", "max")] == [1, 3, 3]
    assert [found[f"published_lag_{q}"].value for q in ("p50", "p95", "max")] == [1, 3, 3]
    assert found["lag_p50"].n == 8 * 8
    # every epoch consumes the whole batch
    assert found["training_tokens_per_second"].numerator == 2 * 2 * 80
    assert found["output_tokens_per_second"].numerator == 2 * 80
    # log w = 0.1 a token for each update of lag
    expected = sum(0.1 * lag * half for lag, half in ((0, 1), (1, 1), (2, 1), (3, 1))) / 4
    assert found["log_ratio_mean"].value == pytest.approx(expected, rel=1e-5)
    assert found["binding_clip_fraction"].value is not None


def test_batches_generated_ahead_are_that_much_older(tmp_path: Path) -> None:
    found = figures(tmp_path, {"warmup_steps": 3}, ahead=2)
    assert [found[f"lag_{q}"].value for q in ("p50", "p95", "max")] == [2, 2, 2]
    assert found["mismatch_mean"].value is None
    assert "zero lag" in str(found["mismatch_mean"].reason)


def test_first_batches_of_such_a_run_are_younger(tmp_path: Path) -> None:
    found = figures(tmp_path, {"warmup_steps": 0}, ahead=2)
    # batches 0, 1, 2 are sampled at version 0 and consumed at 0, 1, 2; the other 7 are two updates old
    assert [found[f"lag_{q}"].value for q in ("p50", "p95", "max")] == [2, 2, 2]
    assert found["mismatch_mean"].n == 80


def test_each_token_has_the_lag_of_the_version_that_sampled_it(tmp_path: Path) -> None:
    """Completions of 4, 2, 4, 6 tokens, trained at version 3. The second began two versions ago, the last one ago."""
    sampled = [[3] * 4, [1, 1], [3] * 4, [2, 2, 2, 3, 3, 3]]
    found = loop_figures(loop_cell(tmp_path, batches={3: {"token_policy_versions": sampled}}), warmup_steps=3)
    assert [found[f"token_lag[{which}]"].value for which in ("smallest", "mean", "largest")] == [0, (2 * 2 + 3) / 16, 2]
    assert found["token_lag[mean]"].n == 16
    assert [found[f"lag_{q}"].value for q in ("p50", "max")] == [0, 2]


def test_age_in_seconds(tmp_path: Path) -> None:
    """A completion of length n ends (n - 1) / 7 of the 20 ms of decode after the first token; then come the rest of
    decode, 2 ms of verifier and 1 ms of batch assembly before the step starts."""
    found = figures(tmp_path)
    ages = sorted(0.020 * (8 - length) / 7 + 0.003 for length in (3, 5, 8, 4))
    assert found["age_seconds_max"].value == pytest.approx(ages[3], rel=1e-5)
    assert found["age_seconds_p95"].value == pytest.approx(ages[3], rel=1e-5)
    assert found["age_seconds_p50"].value == pytest.approx(ages[1], rel=1e-5)


def test_stale_records_are_counted_with_their_tokens(tmp_path: Path) -> None:
    # every 4th completion, of 4 tokens each
    found = figures(tmp_path, stale_every=4)
    assert found["stale_rejected_records"].value == 32
    assert found["stale_rejected_tokens"].value == 32 * 4
    assert found["token_fates[dropped]"].value == 40 * 4
    assert found["token_closure_gap"].value == 0


def test_series_of_the_lag_are_the_counts(tmp_path: Path) -> None:
    from harness.measure.api import series_cell

    task = {"minibatches": 2, "inner_epochs": 2, "steps": 12, "warmup_steps": 4}
    lag = series_cell(view(tmp_path, task))["lag"]
    assert lag == {"lag": [0, 1, 2, 3], "records": [16] * 4, "tokens": [80] * 4}


def test_a_run_shorter_than_its_warmup_says_so(tmp_path: Path) -> None:
    ledger = fake_ledger(tmp_path, {"steps": 2})
    values = {value.name: value for value in measure_cell(ledger, context({"warmup_steps": 2}))}
    assert values["lag_p50"].value is None
    assert values["lag_p50"].reason == "the run has 2 optimizer steps, of which 2 are warm-up"


def test_the_bound_is_what_the_settings_declare(tmp_path: Path) -> None:
    assert loop_figures(loop_cell(tmp_path / "a", notes={"settings": {"lag_bound": 2}}))["lag_bound"].value == 2
    assert "no lag bound" in str(loop_figures(loop_cell(tmp_path / "b"))["lag_bound"].reason)
