"""Lean-Ops: events of hundreds of topics into Apache Iceberg, every record accounted for."""
