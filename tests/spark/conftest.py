"""One Spark application and one home for the whole tier; every test has topics of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.quick_java import QUICK_JAVA
from tests.spark.driver import OpenGate, TopicDriver
from tests.spark.rebuilds import FIRST, SCHEMA, SECOND, live

from lean_ops.settings import load_settings
from lean_ops.wiring import Services


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("a home with spaces")
    made = Services(load_settings({"home": home, "column_limit": 25, "spark_java_options": QUICK_JAVA}, environ={}))
    made.lake.ensure_shared()
    yield made
    made.close()


_numbers = itertools.count()


@pytest.fixture
def new_topic(services: Services) -> Callable[[], TopicDriver]:
    def make() -> TopicDriver:
        return TopicDriver(services, f"t{next(_numbers)}", OpenGate())

    return make


@pytest.fixture
def topic(new_topic: Callable[[], TopicDriver]) -> TopicDriver:
    return new_topic()


@pytest.fixture
def lived(topic: TopicDriver) -> TopicDriver:
    """A topic with two batches: copies, corrections, refused rows of both hops, new columns."""
    topic.use_schema(SCHEMA)
    live(topic, FIRST)
    live(topic, SECOND)
    return topic
