package leanops.judge;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** The envelope's columns, which come before the payload's in every input. */
enum Envelope {
  TOPIC_NAME(DataTypes.StringType),
  MESSAGE_ID(DataTypes.StringType),
  IDEMPOTENCY_KEY(DataTypes.StringType),
  PERIOD_REFERENCE(DataTypes.StringType),
  CORRELATION_ID(DataTypes.StringType),
  PUBLISH_TIME(DataTypes.TimestampType),
  INGESTION_TS(DataTypes.LongType);

  private static final UTF8String THERE = UTF8String.fromString("there");

  final DataType type;

  Envelope(DataType type) {
    this.type = type;
  }

  /** The text of a column that is one. */
  UTF8String text(InternalRow input) {
    return input.isNullAt(ordinal()) ? null : input.getUTF8String(ordinal());
  }

  /** The number, or the microseconds, of a column that has no text. */
  Long number(InternalRow input) {
    return input.isNullAt(ordinal()) ? null : Long.valueOf(input.getLong(ordinal()));
  }

  /** What a rule about the column looks at: its text; of a blank one nothing, of a number no more than that it is there. */
  UTF8String asked(InternalRow input) {
    if (input.isNullAt(ordinal())) {
      return null;
    }
    UTF8String text = type == DataTypes.StringType ? input.getUTF8String(ordinal()) : THERE;
    return TextBytes.isBlank(text) ? null : text;
  }
}
