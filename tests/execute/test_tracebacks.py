"""What a log of several processes ended with: the root, whoever wrote it, in whatever colour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute.tracebacks import Raised, plain, root_exception

NAMES = st.sampled_from(
    ["ValueError", "torch.OutOfMemoryError", "verl.utils.ConfigError", "AssertionError", "HookDrift", "Exception"]
)
TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40).map(str.strip).filter(bool)
HEADS = st.sampled_from([
    "", "(TaskRunner pid=12) ", "(WorkerDict pid=7, ip=10.0.0.2) ", "(pid=3) ", "(raylet) ", "[rank0]: ", "  | ",
    "(EngineCore pid=99) ERROR 11-29 21:00:00 [core.py:866] ", "(TaskRunner pid=12) (EngineCore_DP0 pid=99) ",
    "2026-11-29 21:00:00,123\tERROR worker.py:421 -- ",
])  # fmt: skip
TAILS = st.sampled_from(["", " [repeated 3x across cluster]"])
COLOURS = st.sampled_from(["", "\x1b[36m", "\x1b[0;31m", "\x1b[1m\x1b[38;5;12m"])
NOISE = st.sampled_from([
    "", "step 3 of 20", "INFO 11-29 21:00:00 [core.py:1] loading", "Traceback (most recent call last):",
    "WARNING 11-29 21:00:00 [x.py:1] ValueError: only a warning", "  raise ValueError('source')", "loss: 0.25",
    "Error executing job with overrides: []", "Exception in thread Thread-1 (run):",
])  # fmt: skip
WRAPPERS = st.sampled_from([
    "ray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=12, ip=127.0.0.1, actor_id=1, repr=<x>)",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "SystemExit: 1", "KeyboardInterrupt",
])  # fmt: skip


def _shown(name: str, text: str, head: str, colour: str, tail: str) -> str:
    end = "\x1b[0m" if colour else ""
    return f"{colour}{head}{end}{name}: {text}{tail}"


@given(NAMES, TEXTS, HEADS, COLOURS, TAILS, st.lists(NOISE, max_size=5), st.lists(NOISE, max_size=5))
def test_an_exception_is_read_whoever_wrote_it(
    name: str, text: str, head: str, colour: str, tail: str, before: list[str], after: list[str]
) -> None:
    lines = [*before, _shown(name, text, head, colour, tail), *after]
    assert root_exception("\n".join(lines)) == Raised(name, text)


@given(NAMES, TEXTS, HEADS, COLOURS, st.lists(WRAPPERS, min_size=1, max_size=3), st.data())
def test_the_root_is_told_and_the_wrapper_that_ended_the_run(
    name: str, text: str, head: str, colour: str, wrappers: list[str], data: st.DataObject
) -> None:
    lines = [_shown(name, text, head, colour, "")]
    for wrapper in wrappers:
        lines += [data.draw(NOISE), data.draw(HEADS) + wrapper]
    found = root_exception("\n".join(lines))
    assert found is not None
    assert (found.name, found.text) == (name, text)
    assert found.ended_by is not None
    assert found.ended_by in wrappers[-1]
    assert found.ended_by in found.words()


@given(NAMES, TEXTS, WRAPPERS)
def test_what_a_wrapper_quotes_is_the_root(name: str, text: str, wrapper: str) -> None:
    """Ray prints the worker's traceback after its own words."""
    assert root_exception(f"{wrapper}\n  File 'x.py', line 3, in run\n{name}: {text}") == Raised(name, text)


@given(WRAPPERS, st.lists(NOISE, max_size=4))
def test_a_wrapper_alone_is_what_there_is(wrapper: str, before: list[str]) -> None:
    found = root_exception("\n".join([*before, wrapper]))
    assert found is not None
    assert found.ended_by is None
    assert wrapper.startswith((found.name, found.name.rsplit(".", 1)[-1]))


@given(NAMES, TEXTS)
def test_what_python_ignores_at_its_end_is_not_the_reason(name: str, text: str) -> None:
    ending = "Exception ignored in: <function Gone.__del__ at 0x7f>\nTraceback (most recent call last):\n"
    log = f"{name}: {text}\n{ending}AttributeError: 'NoneType' object has no attribute 'close'"
    assert root_exception(log) == Raised(name, text)
    assert root_exception(ending + "TypeError: gone") is None


@given(st.text())
def test_any_text_is_one_line_at_most(text: str) -> None:
    found = root_exception(text)
    assert found is None or ("\n" not in found.words() and len(found.words()) <= 300)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("\x1b[36m(TaskRunner pid=12)\x1b[0m ValueError: x", "ValueError: x"),
        ("(EngineCore pid=9) ERROR 11-29 21:00:00 [core.py:866] KeyError: 'a'", "KeyError: 'a'"),
        ("(a sentence) that is no process", "(a sentence) that is no process"),
    ],
)
def test_what_is_put_before_a_line_is_taken_away(line: str, left: str) -> None:
    assert plain(line) == left


def test_a_bare_assertion_is_an_exception() -> None:
    assert root_exception("AssertionError") == Raised("AssertionError", "")
    assert root_exception("nothing here") is None
