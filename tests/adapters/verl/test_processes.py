from adapters.verl.processes import device_of


def test_roles_that_take_turns_on_the_same_devices_have_one_label() -> None:
    cell = {"layout": {"placement": "colocated"}}
    assert device_of(cell, "trainer") == device_of(cell, "rollout")


def test_roles_with_devices_of_their_own_have_their_own() -> None:
    cell = {"layout": {"placement": "disaggregated"}}
    assert (device_of(cell, "trainer"), device_of(cell, "rollout")) == ("trainer", "rollout")
