"""Java options for tests: their Spark lives for seconds, so optimising its code costs more than it brings."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
