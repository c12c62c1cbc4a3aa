"""How others would do it: each takes the same RAW rows and makes a table of flat columns."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from benchmarks.data import LEAVES, column_of
from benchmarks.floor import session_for, spark_table
from benchmarks.losses import ID
from lean_ops.model.tables import TableName

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from benchmarks.home import Home

_DATABASE: Final = "floor_db"
_PAYLOAD: Final = "json_payload"
_CORRUPT: Final = "_corrupt_record"
_CORES: Final = 2
_PAGE: Final = 5_000


@dataclass(frozen=True, slots=True)
class SparkJobs:
    """Plain Spark jobs in the product's own session, into Iceberg tables."""

    home: Home
    rows: int

    def raw(self, name: TableName) -> DataFrame:
        """The RAW rows, as far as a job needs them."""
        return session_for(self.home, self.rows).table(spark_table(name)).select(ID, _PAYLOAD)

    def from_json(self, raw: TableName, number: int) -> pa.Table:
        """Infer a schema from all payloads, parse with it, write each leaf as a text."""
        rows = self.raw(raw)
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        schema = rows.sparkSession.read.options(**options).json(rows.rdd.map(lambda row: row[_PAYLOAD])).schema
        parsed = rows.selectExpr(ID, f"from_json({_PAYLOAD}, '{_ddl(schema)}', map({_as_map(options)})) AS p")
        leaves = [leaf for leaf in _leaves(schema, "p") if leaf != f"p.`{_CORRUPT}`"]
        good = parsed.where(f"p.`{_CORRUPT}` IS NULL") if _CORRUPT in schema.names else parsed
        texts = [f"CAST({leaf} AS string) AS `{_flat_name(leaf)}`" for leaf in leaves]
        return self._written(good.selectExpr(ID, *texts), f"from_json_{number}")

    def python_udf(self, raw: TableName, number: int) -> pa.Table:
        """A Python function from payload to a map of texts; the keys in one pass, the rows in a second."""
        from pyspark.sql import functions as F

        flat = F.udf(flattened, "map<string,string>")
        rows = self.raw(raw).select(ID, flat(_PAYLOAD).alias("leaves")).where("leaves IS NOT NULL")
        keys = sorted(row[0] for row in rows.select(F.explode(F.map_keys("leaves"))).distinct().collect())
        return self._written(rows.select(ID, *(F.col("leaves")[key].alias(key) for key in keys)), f"udf_{number}")

    def _written(self, rows: DataFrame, name: str) -> TableName:
        table = TableName(_DATABASE, name)
        self.home.services.lake.catalog.create_namespace_if_not_exists(_DATABASE)
        rows.writeTo(spark_table(table)).using("iceberg").createOrReplace()
        return table


def flattened(payload: str) -> dict[str, str] | None:
    """A payload's leaves as texts, numbers as they were written; None if Python's json does not take it."""
    try:
        found = json.loads(payload, parse_float=str, parse_int=str)
    except ValueError:
        return None
    return dict(_walk("", found)) if isinstance(found, dict) else None


def _walk(prefix: str, members: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in members.items():
        if isinstance(value, dict):
            yield from _walk(f"{prefix}{key}_", value)
        elif value is not None:
            yield (
                f"{prefix}{key}".lower(),
                value if isinstance(value, str) else json.dumps(value, separators=(",", ":")),
            )


def _ddl(schema: StructType) -> str:
    return str(schema.toDDL()).replace("\\", "\\\\").replace("'", "\\'")


def _as_map(options: dict[str, str]) -> str:
    return ", ".join(f"'{key}', '{value}'" for key, value in options.items())


def _leaves(schema: StructType, prefix: str) -> Iterator[str]:
    for field in schema.fields:
        path = f"{prefix}.`{field.name}`"
        if field.dataType.typeName() == "struct":
            yield from _leaves(field.dataType, path)
        else:
            yield path


def _flat_name(leaf: str) -> str:
    return leaf.removeprefix("p.").replace("`", "").replace(".", "_").lower()


def duck(files: list[str], to: Path) -> Path:
    """DuckDB: the 31 leaves that are known beforehand, into one Parquet file; nothing is discovered."""
    import duckdb

    leaves = ", ".join(f"json_extract_string({_PAYLOAD}, '$.{leaf}') AS {column_of(leaf)}" for leaf in LEAVES)
    with duckdb.connect(config={"threads": _CORES}) as connection:
        connection.execute(
            f"COPY (SELECT {ID}, {leaves} FROM read_parquet($files) WHERE json_valid({_PAYLOAD}))"  # noqa: S608  our names
            f" TO '{to}' (FORMAT parquet, COMPRESSION zstd)",
            {"files": files},
        )
    return to


def has_dlt() -> bool:
    """Whether dlt is installed; `make bench` sees to it."""
    return find_spec("dlt") is not None


def dlt_load(files: list[str], folder: Path) -> Path:
    """dlt: payloads that orjson takes, into a DuckDB file; dlt finds the columns and their types by itself."""
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    import dlt

    file = folder / "dlt.duckdb"
    pipeline = dlt.pipeline(
        "events",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.duckdb(str(file)),
        dataset_name="out",
    )
    resource = dlt.resource(_parsed(files), name="events")
    pipeline.run(resource, loader_file_format="parquet").raise_on_failed_jobs()
    return file


def _parsed(files: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Pages of parsed payloads with their ids; dlt takes a page faster than its rows one by one."""
    import orjson
    import pyarrow.parquet as pq

    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_PAGE, columns=[ID, _PAYLOAD]):
            page = []
            for row in batch.to_pylist():
                with suppress(orjson.JSONDecodeError):
                    page.append({ID: row[ID], **orjson.loads(row[_PAYLOAD])})
            yield page


def read_dlt(file: Path) -> pa.Table:
    """The rows of dlt as one table: a variant column counts as the leaf's own, a list's table as its column."""
    import duckdb

    with duckdb.connect(str(file), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        lists = [name for name in tables if name.startswith("events__")]
        names = [row[0] for row in connection.execute("DESCRIBE out.events").fetchall()]
        columns = [*_own_columns(names), *(f'"{name}".list AS "{name.removeprefix("events__")}"' for name in lists)]
        joins = (f'LEFT JOIN ({_list_texts(name)}) AS "{name}" ON "{name}".id = e._dlt_id' for name in lists)
        query = f"SELECT {', '.join(columns)} FROM out.events AS e {' '.join(joins)}"  # noqa: S608  dlt's own names
        return connection.sql(query).to_arrow_table()


def _own_columns(names: list[str]) -> Iterator[str]:
    variants = {name: name.partition("__v_")[0] for name in names if "__v_" in name}
    for name in names:
        if not name.startswith("_dlt_") and name not in variants:
            same = [name, *(variant for variant, leaf in variants.items() if leaf == name)]
            texts = ", ".join(f'CAST(e."{column}" AS VARCHAR)' for column in same)
            yield f'coalesce({texts}) AS "{name}"'


def _list_texts(name: str) -> str:
    """The lists of a table of dlt's as JSON texts, by the row that they belong to."""
    return (
        "SELECT _dlt_parent_id AS id, CAST(to_json(list(value ORDER BY _dlt_list_idx)) AS VARCHAR) AS list"  # noqa: S608  dlt's own names
        f' FROM out."{name}" GROUP BY ALL'
    )
