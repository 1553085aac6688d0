"""The page of queries answers on real ledgers: the loop of known truth, and a simulated loop with a queue."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from harness.measure.series import cell_series
from tests import fakes
from tests.simulate import worlds

PAGE = Path(__file__).resolve().parents[1] / "docs" / "queries.md"
BLOCKS: list[tuple[str, str, str]] = [
    (title, kind, block)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for kind, block in re.findall(r"^```(sql|python)\n(.*?)^```$", text, re.M | re.S)
]
QUERIES = {title: block for title, kind, block in BLOCKS if kind == "sql" and not block.startswith("create")}
TRUTH: dict[str, Any] = {"left_in_flight": True, "drop_every": 7, "error_every": 11, "ahead": 1}
TASK = {"warmup_steps": 0, "minibatches": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runs/` in it."""
    folder = tmp_path_factory.mktemp("queries")
    fakes.fake_ledger(folder / "runs" / "known", TASK, **TRUTH)
    worlds.run(folder / "runs")
    return folder


@pytest.fixture
def connection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> duckdb.DuckDBPyConnection:
    monkeypatch.chdir(folder)
    connection = duckdb.connect()
    connection.execute(next(block for _, _, block in BLOCKS if block.startswith("create")))
    return connection


def test_there_are_queries_for_all_three_readers() -> None:
    assert len(QUERIES) >= 12
    python = "".join(block for _, kind, block in BLOCKS if kind == "python")
    assert all(name in python for name in ("polars", "pandas", "duckdb"))


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_has_an_answer(title: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert connection.execute(QUERIES[title]).fetchall()


@pytest.mark.parametrize("block", [block for _, kind, block in BLOCKS if kind == "python"])
def test_a_script_runs(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec(compile(block, PAGE.name, "exec"), {})


def _answer(connection: duckdb.DuckDBPyConnection, words: str, cell: str = fakes.CELL_ID) -> list[dict[str, Any]]:
    """The rows of one cell in the answer to the question with these words in it."""
    (query,) = (block for title, block in QUERIES.items() if words in title)
    rows = connection.sql(query).arrow().read_all().to_pylist()
    return [row for row in rows if row["cell"] == cell]


def test_the_answers_are_those_of_the_measures(
    connection: duckdb.DuckDBPyConnection, folder: Path, tmp_path: Path
) -> None:
    series = cell_series(fakes.view(tmp_path, TASK, **TRUTH))
    worth = {row["step"]: row["ess_share"] for row in _answer(connection, "worth")}
    expected = dict(zip(series["updates"]["step"], series["updates"]["ess_share"], strict=True))
    assert worth == pytest.approx(expected)
    lags = {row["lag"]: row["tokens"] for row in _answer(connection, "How old")}
    assert lags == dict(zip(series["lag"]["lag"], series["lag"]["tokens"], strict=True))
    reward = [row["reward"] for row in _answer(connection, "teach nothing")]
    assert len(reward) == len(series["reward"]["mean"])


def test_the_fates_of_a_cell_add_up_to_what_was_sampled(connection: duckdb.DuckDBPyConnection) -> None:
    rows = _answer(connection, "became of every")
    (sampled,) = connection.execute(
        "select sum(list_sum(policy_mask)) from rollouts where cell = ?", [fakes.CELL_ID]
    ).fetchone() or (None,)
    assert sum(row["tokens"] for row in rows) == sampled
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
    assert {row["fate"] for row in rows} == {"trained", "dropped", "in_flight"}
