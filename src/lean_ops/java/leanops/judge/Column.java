package leanops.judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.spark.unsafe.types.UTF8String;

/** One payload column: its text, its value, its rules, and how its value may be written. */
final class Column {
  final String name;
  final List<Rule> rules;

  private final UTF8String defaultText;
  private final Cast cast;
  private final Check[] checks;
  private final Protection protection;
  private final TextBytes bytes = new TextBytes();

  Column(JsonNode column, byte[] innerKey, byte[] outerKey) {
    name = column.get("name").asText();
    defaultText = UTF8String.fromString(column.path("default").textValue());
    cast = Cast.to(
        column.get("kind").asText(),
        column.get("precision").asInt(),
        column.get("scale").asInt(),
        column.get("format").asText());
    rules = StreamSupport.stream(column.get("rules").spliterator(), false)
        .map(rule -> Rule.of(rule, this::literal))
        .toList();
    checks = rules.stream().map(Rule::check).toArray(Check[]::new);
    protection = Protection.named(column.path("pii").textValue(), innerKey, outerKey);
  }

  private Object literal(JsonNode text) {
    return value(UTF8String.fromString(text.asText()));
  }

  /** The column's text: blank is nothing, and in place of nothing stands the default. */
  UTF8String text(UTF8String source) {
    return source == null || TextBytes.isBlank(source) ? defaultText : source;
  }

  /** The value of a text; null for none, and for a text that does not fit the type. */
  Object value(UTF8String text) {
    return text == null || cast == null ? text : cast.value(bytes.load(text));
  }

  /** Whether every rule is kept. */
  boolean isKept(UTF8String text, Object value) {
    for (Check check : checks) {
      if (check.isBroken(text, value)) {
        return false;
      }
    }
    return true;
  }

  /** A value as it may be written; those that are no texts can only be dropped. */
  Object written(Object value) {
    if (protection == null || value == null) {
      return value;
    }
    return value instanceof UTF8String text ? protection.of(text) : null;
  }

  /** The column's text as it may be shown in an error row. */
  UTF8String shown(UTF8String text) {
    return protection == null || text == null ? text : protection.of(text);
  }
}
