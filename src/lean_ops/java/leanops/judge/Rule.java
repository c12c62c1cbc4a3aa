package leanops.judge;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.unsafe.types.UTF8String;

/** A rule of one field: what breaks it, and the words for that. */
record Rule(int severity, String errorType, String field, String words, boolean showsValue, Check check) {
  private static final int SHOWN_CHARACTERS = 100;

  /** A rule as the plan has it. */
  static Rule of(JsonNode rule, Check.Literals literals) {
    return new Rule(
        rule.get("severity").asInt(),
        rule.get("error_type").asText(),
        rule.get("field").asText(),
        rule.get("words").asText(),
        rule.get("shows_value").asBoolean(),
        Check.of(rule, literals));
  }

  /** Why a text is refused; the value stands in quotes, shortened. */
  String message(UTF8String text) {
    return field + ": " + (showsValue ? "'" + shortened(text) + "' " : "") + words;
  }

  private static String shortened(UTF8String text) {
    boolean isShort = text.numBytes() <= SHOWN_CHARACTERS || text.numChars() <= SHOWN_CHARACTERS;
    return isShort ? text.toString() : text.substring(0, SHOWN_CHARACTERS) + "…";
  }
}
