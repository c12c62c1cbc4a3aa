from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from lean_ops.bridge.budget import FLOOR_BYTES, FLOOR_MESSAGES, Budget, Room


def budget(messages: int = 100, most_bytes: int = 10_000_000) -> Budget:
    return Budget(Room(messages, most_bytes))


async def is_waiting(task: asyncio.Task[bool]) -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


async def fill(of: Budget, own: Room, count: int, size: int = 1) -> None:
    for _ in range(count):
        assert await of.enter(own, size)


def test_who_comes_when_all_places_are_taken_waits_for_one() -> None:
    async def story() -> None:
        all_of_it, first, second = budget(30), Room(100, 100), Room(100, 100)
        await fill(all_of_it, second, 10)
        await fill(all_of_it, first, 20)
        late = asyncio.create_task(all_of_it.enter(second, 1))
        assert await is_waiting(late)
        all_of_it.leave(first, 1)
        assert await late
        assert (all_of_it.all.messages, second.messages) == (30, 11)

    asyncio.run(story())


def test_places_are_given_in_the_order_of_asking() -> None:
    async def story() -> None:
        all_of_it, owner = budget(10), Room(100, 100)
        await fill(all_of_it, owner, 10)
        rooms = [Room(100, 100, messages=20) for _ in range(3)]
        tasks = [asyncio.create_task(all_of_it.enter(room, 1)) for room in rooms]
        for task in tasks:
            assert await is_waiting(task)
            all_of_it.leave(owner, 1)
            assert await task

    asyncio.run(story())


def test_a_topic_at_its_own_limit_keeps_nobody_waiting() -> None:
    async def story() -> None:
        all_of_it, greedy, other = budget(100), Room(20, 1000), Room(50, 1000)
        await fill(all_of_it, greedy, 20)
        stuck = asyncio.create_task(all_of_it.enter(greedy, 1))
        assert await is_waiting(stuck)
        await fill(all_of_it, other, 50)
        assert not stuck.done()
        all_of_it.leave(greedy, 1)
        assert await stuck

    asyncio.run(story())


def test_a_topic_that_holds_next_to_nothing_gets_in_however_full_it_is() -> None:
    async def story() -> None:
        all_of_it, greedy, small = budget(50), Room(50, 1000), Room(50, 10_000_000)
        await fill(all_of_it, greedy, 50)
        await fill(all_of_it, small, FLOOR_MESSAGES)
        next_one = asyncio.create_task(all_of_it.enter(small, 1))
        assert await is_waiting(next_one)
        all_of_it.leave(small, 1)
        assert await next_one
        large = Room(50, 10_000_000)
        assert await all_of_it.enter(large, 5 * FLOOR_BYTES)
        assert await is_waiting(asyncio.create_task(all_of_it.enter(large, 1)))

    asyncio.run(story())


def test_bytes_count_like_messages_and_one_of_any_size_gets_into_an_empty_room() -> None:
    async def story() -> None:
        all_of_it, own = budget(100, 1_000_000), Room(100, 10_000_000)
        assert await all_of_it.enter(own, 5_000_000)
        late = asyncio.create_task(all_of_it.enter(own, 1))
        assert await is_waiting(late)
        all_of_it.leave(own, 5_000_000)
        assert await late

    asyncio.run(story())


def test_a_topic_that_is_turned_away_waits_no_longer() -> None:
    async def story() -> None:
        all_of_it, in_line, at_limit = budget(20), Room(100, 100), Room(15, 1000)
        await fill(all_of_it, at_limit, 15)
        await fill(all_of_it, in_line, 10)
        tasks = [asyncio.create_task(all_of_it.enter(room, 1)) for room in (in_line, at_limit)]
        for task, room in zip(tasks, (in_line, at_limit), strict=True):
            assert await is_waiting(task)
            all_of_it.turn_away(room)
            assert not await task
        assert all_of_it.all.messages == 25

    asyncio.run(story())


def test_one_who_was_cancelled_at_the_door_takes_no_place() -> None:
    async def story() -> None:
        all_of_it, owner, late, later = budget(10), Room(50, 100), Room(50, 100, 10), Room(50, 100, 10)
        await fill(all_of_it, owner, 10)
        gone = asyncio.create_task(all_of_it.enter(late, 1))
        waiting = asyncio.create_task(all_of_it.enter(later, 1))
        assert await is_waiting(gone)
        gone.cancel()
        assert await is_waiting(waiting)
        all_of_it.leave(owner, 1)
        assert await waiting
        assert (late.messages, later.messages) == (10, 11)

    asyncio.run(story())


steps = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 400_000)), max_size=120)


@given(steps)
def test_the_bound_holds_and_nobody_waits_while_there_is_room(doings: list[tuple[int, bool, int]]) -> None:
    async def story() -> None:
        all_of_it = budget(30, 2_000_000)
        rooms = [Room(20, 1_000_000) for _ in range(4)]
        inside: list[list[int]] = [[] for _ in rooms]
        asking: dict[int, tuple[asyncio.Task[bool], int]] = {}
        for number, enters, size in doings:
            if enters and number not in asking:
                asking[number] = (asyncio.create_task(all_of_it.enter(rooms[number], size)), size)
            elif not enters and inside[number]:
                all_of_it.leave(rooms[number], inside[number].pop())
            for _ in range(3):
                await asyncio.sleep(0)
            for key, (task, wanted) in list(asking.items()):
                if task.done():
                    inside[key].append(wanted)
                    del asking[key]
            held = [size for sizes in inside for size in sizes]
            assert (all_of_it.all.messages, all_of_it.all.bytes) == (len(held), sum(held))
            floor = len(rooms) * max(FLOOR_BYTES, 400_000)
            assert sum(held) <= 2_000_000 + floor
            assert len(held) <= 30 + len(rooms) * FLOOR_MESSAGES
            if asking:
                fits = [
                    rooms[key].has_place_for(wanted) and all_of_it.all.has_place_for(wanted)
                    for key, (_, wanted) in asking.items()
                ]
                assert not all(fits)
        for task, _ in asking.values():
            task.cancel()

    asyncio.run(story())
