from adapters.openrlhf.records import Completion, names_of, run_lengths, trace_of

ROWS = [{"prompt_id": name} for name in ("a", "b", "c", "d")]


def test_a_completion_survives_the_ride_in_a_label() -> None:
    completion = Completion(3, 1, 0, tokens=[5, 6], logprobs=[-0.5, -1.5], served=[[0, 1], [2, 1]], reward=1.0)
    assert Completion.from_label(completion.to_label()) == completion


def test_served_broadcasts_are_told_token_by_token() -> None:
    served = [0, 0, 1, 3, 3]
    completion = Completion(0, 0, 0, served=run_lengths(served))
    assert completion.served == [[0, 2], [1, 1], [3, 2]]
    assert completion.token_served == served


def test_a_sample_is_named_by_the_round_in_which_its_prompt_was_handed_out() -> None:
    names = names_of(ROWS, Completion(3, 1, 0), prompts_per_batch=2)
    assert (names.group_id, names.sample_id) == ("d.b1", "d.b1.g1")


def test_an_attempt_that_generates_a_batch_anew_has_spans_of_its_own() -> None:
    assert [trace_of(2, attempt) for attempt in (0, 1)] == ["gen-2", "gen-2~1"]
