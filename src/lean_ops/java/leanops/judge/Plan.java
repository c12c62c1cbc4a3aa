package leanops.judge;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** What rows are judged by: a schema's columns and rules, made ready for one task. */
final class Plan {
  /** The field of the output that holds the error row of a refused input; no column can be called so. */
  static final String REFUSED = "refused row";

  private static final ObjectMapper JSON = new ObjectMapper();

  final UTF8String schemaVersion;
  final EnvelopeRule[] envelopeRules;
  final Column[] columns;
  final UTF8String[] names;

  private Plan(JsonNode plan, byte[] innerKey, byte[] outerKey) {
    schemaVersion = UTF8String.fromString(plan.get("schema_version").asText());
    List<EnvelopeRule> rules = new ArrayList<>();
    plan.get("envelope").forEach(rule -> rules.add(EnvelopeRule.of(Rule.of(rule, text -> null))));
    envelopeRules = rules.toArray(EnvelopeRule[]::new);
    List<Column> found = new ArrayList<>();
    plan.get("columns").forEach(column -> found.add(new Column(column, innerKey, outerKey)));
    columns = found.toArray(Column[]::new);
    names = found.stream().map(column -> UTF8String.fromString(column.name)).toArray(UTF8String[]::new);
  }

  /** The plan that a JSON text holds. */
  static Plan of(String text, byte[] innerKey, byte[] outerKey) {
    return new Plan(parsed(text), innerKey, outerKey);
  }

  private static JsonNode parsed(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  /** The types of the input: the envelope's, and a text for each payload column. */
  static DataType[] inputTypes(String text) {
    List<DataType> types = new ArrayList<>();
    for (Envelope column : Envelope.values()) {
      types.add(column.type);
    }
    parsed(text).get("columns").forEach(column -> types.add(DataTypes.StringType));
    return types.toArray(DataType[]::new);
  }

  /** The type of the output: the payload columns as Curated has them, and the error row of a refused input. */
  static StructType resultType(String text) {
    StructType type = new StructType();
    for (JsonNode column : parsed(text).get("columns")) {
      type = type.add(column.get("name").asText(), typeOf(column));
    }
    return type.add(REFUSED, Refusals.FIELDS);
  }

  private static DataType typeOf(JsonNode column) {
    return switch (column.get("kind").asText()) {
      case "STRING" -> DataTypes.StringType;
      case "INT" -> DataTypes.IntegerType;
      case "BIGINT" -> DataTypes.LongType;
      case "DOUBLE" -> DataTypes.DoubleType;
      case "DECIMAL" -> DataTypes.createDecimalType(column.get("precision").asInt(), column.get("scale").asInt());
      case "BOOLEAN" -> DataTypes.BooleanType;
      case "DATE" -> DataTypes.DateType;
      case "TIMESTAMP" -> DataTypes.TimestampType;
      default -> throw new IllegalArgumentException("no type " + column);
    };
  }

  /** A rule about an envelope column. */
  record EnvelopeRule(Envelope column, Rule rule) {
    static EnvelopeRule of(Rule rule) {
      return new EnvelopeRule(Envelope.valueOf(rule.field().toUpperCase(Locale.ROOT)), rule);
    }

    boolean isBroken(InternalRow input) {
      return rule.check().isBroken(column.asked(input), null);
    }
  }
}
