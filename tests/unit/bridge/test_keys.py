from __future__ import annotations

from lean_ops.bridge.keys import AwaitedKeys
from lean_ops.bridge.parcel import Parcel


def parcel(number: int, key: str = "k") -> Parcel:
    return Parcel(f"ack-{number}", str(number), key, 1, "", 1, 0.0, 0.0)


def test_later_messages_of_a_key_wait_for_the_first_that_went_back() -> None:
    now = [0.0]
    keys = AwaitedKeys(60, lambda: now[0])
    keys.went_back([parcel(1), parcel(2)], 10)
    assert keys.is_too_early(parcel(2))
    assert keys.is_too_early(parcel(3))
    assert not keys.is_too_early(parcel(4, "other"))
    assert not keys.is_too_early(parcel(5, ""))
    assert not keys.is_too_early(parcel(1))
    assert not keys.is_too_early(parcel(2))


def test_a_key_is_not_shut_for_ever() -> None:
    now = [0.0]
    keys = AwaitedKeys(60, lambda: now[0])
    keys.went_back([parcel(1)], 10)
    now[0] = 69.9
    assert keys.is_too_early(parcel(2))
    now[0] = 70.0
    assert not keys.is_too_early(parcel(2))


def test_of_very_many_keys_the_oldest_are_forgotten() -> None:
    keys = AwaitedKeys(60, lambda: 0.0)
    keys.went_back((parcel(number, f"k{number}") for number in range(10_001)), 0)
    assert not keys.is_too_early(parcel(-1, "k0"))
    assert keys.is_too_early(parcel(-1, "k1"))
    assert keys.is_too_early(parcel(-1, "k10000"))


def test_messages_without_a_key_are_never_waited_for() -> None:
    keys = AwaitedKeys(60, lambda: 0.0)
    keys.went_back([parcel(1, "")], 0)
    assert not keys.is_too_early(parcel(2, ""))
