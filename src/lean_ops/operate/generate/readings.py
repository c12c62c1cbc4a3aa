"""Meter readings: numbers with many digits, times in milliseconds, names that are no identifiers."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lean_ops.operate.generate.family import Enhancement, Family
from lean_ops.operate.generate.kinds import Kind
from lean_ops.operate.generate.variants import (
    Variant,
    critical,
    forbidden,
    ill_typed,
    removing,
    same_value,
    setting,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.operate.generate.variants import Parts

_FIRMWARE: Final = ("1.4.0", "1.4.1", "2.0.0")
_UNITS: Final = ("kWh", "m3")


def _write(_key: str, number: int, at: str, milliseconds: int, draws: Sequence[int]) -> tuple[str, str]:
    first, second, third, fourth = draws
    meter, firmware, battery = f"meter-{number:08d}", _FIRMWARE[first % 3], 2_900 + second % 800
    value, unit = f"{third % 10**5}.{fourth % 10**4:04d}", _UNITS[first % 2]
    quality, estimated = f"0.{800 + second % 200}", "true" if third % 10 == 0 else "false"
    payload = (
        f'{{"meter":{{"id":"{meter}","fw-version":"{firmware}","batteryMillivolt":{battery},'
        f'"location":{{"lat":{52 + first % 1000 / 1000:.4f},"lon":{4 + second % 1000 / 1000:.4f},'
        f'"site":"site-{number % 50}"}},'
        f'"radio":{{"rssi":-{40 + third % 60},"snr":{fourth % 200 / 10:.1f},"gateway":"gw-{first % 30}"}}}},'
        f'"measuredAt":{milliseconds},'
        f'"reading":{{"value":{value},"unit":"{unit}","quality":{quality},"estimated":{estimated},'
        f'"register":"1-0:1.8.{fourth % 3}","multiplier":1e0,'
        f'"phases":[{first % 260}.0,{second % 260}.5,{third % 260}.25]}},'
        f'"sequence":{fourth}}}'
    )
    curated = (
        f'"meter_id":"{meter}","firmware":"{firmware}","measured_at":"{at}","value":"{value}00","unit":"{unit}",'
        f'"quality":{quality},"estimated":{estimated},"battery_mv":{battery},"period_reference":"{at[:7]}"'
    )
    return payload, curated


def _envelope(key: str, at: str) -> str:
    return f'"idempotency_key":"{key}","period_reference":"{at[:7]}",'


def _without_key(parts: Parts) -> str:
    return parts._replace(envelope='"period_reference":"2026-01",').body


def _without_period(parts: Parts) -> str:
    return parts._replace(envelope=parts.envelope.partition('"period_reference"')[0]).body


_TIME: Final = "/measuredAt"
READINGS: Final = Family(
    name="readings",
    prefix="meter",
    by_event_time=True,
    envelope=_envelope,
    write=_write,
    variants={
        Kind.DRIFT: (
            Variant(setting({"/meter/signalDbm": -71})),
            Variant(setting({"/alarms": {"tamper": False, "leak": None}})),
            Variant(setting({"/reading/history": [1, 2, 3]})),
        ),
        Kind.REMOVED: (
            Variant(removing("/reading/unit"), curated={"unit": "kWh"}),
            Variant(removing("/reading/estimated"), curated={"estimated": False}),
            Variant(removing("/meter/batteryMillivolt"), curated={"battery_mv": None}),
            Variant(removing("/meter/fw-version", "/reading/quality"), curated={"firmware": None, "quality": None}),
        ),
        Kind.TYPE_CHANGE: (
            same_value("/reading/value", "value", "1204.5000", "1204.500000"),
            same_value("/reading/value", "value", 1e3, "1000.000000"),
            same_value("/meter/batteryMillivolt", "battery_mv", "3000", 3000),
            same_value("/reading/quality", "quality", "0.5", 0.5),
            same_value("/reading/estimated", "estimated", 1, True),
            Variant(setting({"/meter/location": None})),
        ),
        Kind.CDE_NULL: (
            *critical("/meter/id", "meter_id"),
            *critical(_TIME, "measured_at"),
            *critical("/reading/value", "value"),
            Variant(_without_key, wrong("CDE_VIOLATION", "idempotency_key")),
            Variant(_without_period, wrong("CDE_VIOLATION", "period_reference")),
        ),
        Kind.BAD_TYPE: (
            *ill_typed("/meter/batteryMillivolt", "battery_mv", "low", 3.3, 2**31),
            *ill_typed("/reading/value", "value", "0x10", Decimal("0.1234567"), Decimal(10) ** 12, [1]),
            *ill_typed("/reading/quality", "quality", "good"),
            *ill_typed("/reading/estimated", "estimated", "perhaps"),
        ),
        Kind.BAD_TIMESTAMP: (*ill_typed(_TIME, "measured_at", "2026-02-03T10:15:30Z", 10**18, "now"),),
        Kind.BROKEN_RULE: (
            *forbidden("/reading/quality", "quality", 1.2, -0.1),
            *forbidden("/reading/value", "value", -1),
            *forbidden("/reading/unit", "unit", "MWh"),
            *forbidden("/meter/batteryMillivolt", "battery_mv", -1, 20001),
        ),
        Kind.COMBINED: (
            Variant(
                setting({"/meter/batteryMillivolt": "low", "/reading/quality": 1.2}),
                wrong("TYPE_CAST", "battery_mv", "quality"),
            ),
            Variant(setting({"/meter/id": "", "/reading/value": None}), wrong("CDE_VIOLATION", "meter_id", "value")),
        ),
    },
    enhancement=Enhancement("signal_dbm", {"json_path": "$.meter.signalDbm", "type": "INT"}, -71),
)
