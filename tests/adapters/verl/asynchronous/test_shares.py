from adapters.verl.asynchronous.shares import Share, shares_of


def test_a_pass_is_shared_out_by_requests_without_gap_or_overlap() -> None:
    found = shares_of(100, 200, {"a": "gen-1", "b": "gen-0", "c": "gen-1", "d": "gen-1"})
    assert found == [Share("gen-0", ("b",), 100, 125), Share("gen-1", ("a", "c", "d"), 125, 200)]
    odd = shares_of(0, 10, {str(number): f"gen-{number}" for number in range(3)})
    assert [(share.t_start, share.t_end) for share in odd] == [(0, 3), (3, 6), (6, 10)]


def test_a_pass_over_one_batch_is_its_own() -> None:
    assert shares_of(5, 9, {"a": "gen-4", "b": "gen-4"}) == [Share("gen-4", ("a", "b"), 5, 9)]
