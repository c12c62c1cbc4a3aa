package leanops.judge;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Refused rows as they leave the job: all their reasons, and the declared columns as far as they may be shown. */
final class Refusals {
  /** A refused row's fields; {@code publish_time} is in microseconds, which no time zone can bend. */
  static final StructType FIELDS = new StructType()
      .add("message_id", DataTypes.StringType)
      .add("idempotency_key", DataTypes.StringType)
      .add("topic_name", DataTypes.StringType)
      .add("ingestion_ts", DataTypes.LongType)
      .add("publish_time", DataTypes.LongType)
      .add("raw_record", DataTypes.StringType)
      .add("error_type", DataTypes.StringType)
      .add("error_fields", DataTypes.createArrayType(DataTypes.StringType, false))
      .add("error_message", DataTypes.StringType)
      .add("schema_version", DataTypes.StringType);

  private static final int RAW_RECORD = FIELDS.fieldIndex("raw_record");
  private static final int ERROR_MESSAGE = FIELDS.fieldIndex("error_message");

  private final Plan plan;

  Refusals(Plan plan) {
    this.plan = plan;
  }

  /** The refused row of an input whose payload has these texts and values. */
  InternalRow of(InternalRow input, UTF8String[] texts, Object[] values) {
    List<Broken> reasons = reasons(input, texts, values);
    Set<UTF8String> fields = new LinkedHashSet<>();
    List<String> messages = new ArrayList<>();
    Rule worst = reasons.get(0).rule();
    for (Broken reason : reasons) {
      fields.add(UTF8String.fromString(reason.rule().field()));
      messages.add(reason.rule().message(reason.text()));
      worst = reason.rule().severity() < worst.severity() ? reason.rule() : worst;
    }
    return new GenericInternalRow(new Object[] {
      Envelope.MESSAGE_ID.text(input),
      Envelope.IDEMPOTENCY_KEY.text(input),
      Envelope.TOPIC_NAME.text(input),
      Envelope.INGESTION_TS.number(input),
      Envelope.PUBLISH_TIME.number(input),
      record(texts),
      UTF8String.fromString(worst.errorType()),
      new GenericArrayData(fields.toArray()),
      UTF8String.fromString(String.join("; ", messages)),
      plan.schemaVersion,
    });
  }

  private List<Broken> reasons(InternalRow input, UTF8String[] texts, Object[] values) {
    List<Broken> reasons = new ArrayList<>();
    for (Plan.EnvelopeRule rule : plan.envelopeRules) {
      if (rule.isBroken(input)) {
        reasons.add(new Broken(rule.rule(), null));
      }
    }
    for (int at = 0; at < texts.length; at++) {
      for (Rule rule : plan.columns[at].rules) {
        if (rule.check().isBroken(texts[at], values[at])) {
          reasons.add(new Broken(rule, texts[at]));
        }
      }
    }
    return reasons;
  }

  /** The declared columns' texts as a JSON object; personal data as it would have been written. */
  private UTF8String record(UTF8String[] texts) {
    JsonText json = new JsonText();
    for (int at = 0; at < texts.length; at++) {
      json.sign(at == 0 ? '{' : ',').quoted(plan.names[at]).sign(':').quoted(plan.columns[at].shown(texts[at]));
    }
    return (texts.length == 0 ? json.sign('{') : json).sign('}').text();
  }

  /** About how many bytes a refused row takes. */
  static int size(InternalRow refused) {
    return refused.getUTF8String(RAW_RECORD).numBytes() + refused.getUTF8String(ERROR_MESSAGE).numBytes();
  }

  /** A refused row as JSON. */
  static void write(InternalRow refused, JsonText json) {
    for (int at = 0; at < FIELDS.length(); at++) {
      json.sign(at == 0 ? '{' : ',').quoted(UTF8String.fromString(FIELDS.apply(at).name())).sign(':');
      Object value = refused.get(at, FIELDS.apply(at).dataType());
      if (value instanceof GenericArrayData list) {
        write(list.array(), json);
      } else if (value instanceof Long number) {
        json.number(number);
      } else {
        json.quoted((UTF8String) value);
      }
    }
    json.sign('}');
  }

  private static void write(Object[] texts, JsonText json) {
    for (int at = 0; at < texts.length; at++) {
      json.sign(at == 0 ? '[' : ',').quoted((UTF8String) texts[at]);
    }
    json.sign(']');
  }

  /** A rule that a row breaks, and the text that breaks it. */
  private record Broken(Rule rule, UTF8String text) {}
}
