package leanops.judge;

import java.util.Map;

/** A text that is not blank as a value of one type, as Spark holds it inside; null if it is none of that type. */
@FunctionalInterface
interface Cast {
  Map<String, Boolean> WORDS = Map.of(
      "true", true, "t", true, "yes", true, "y", true, "1", true,
      "false", false, "f", false, "no", false, "n", false, "0", false);
  int LONGEST_WORD = 5;

  /** The value of a text. */
  Object value(TextBytes text);

  /** The cast to a type of a schema; null for STRING, which takes any text as it is. */
  static Cast to(String kind, int precision, int scale, String format) {
    NumberCasts numbers = new NumberCasts();
    return switch (kind) {
      case "STRING" -> null;
      case "INT" -> numbers::wholeInt;
      case "BIGINT" -> numbers::wholeLong;
      case "DOUBLE" -> numbers::nearestDouble;
      case "DECIMAL" -> text -> numbers.decimal(text, precision, scale);
      case "BOOLEAN" -> Cast::bool;
      case "DATE" -> TimeCasts::date;
      case "TIMESTAMP" -> toTime(format);
      default -> throw new IllegalArgumentException("no cast to " + kind);
    };
  }

  private static Cast toTime(String format) {
    return switch (format) {
      case "iso" -> TimeCasts::iso;
      case "epoch_s" -> text -> TimeCasts.sinceEpoch(text, 6);
      case "epoch_ms" -> text -> TimeCasts.sinceEpoch(text, 3);
      default -> throw new IllegalArgumentException("no time format " + format);
    };
  }

  private static Boolean bool(TextBytes text) {
    if (text.length() > LONGEST_WORD) {
      return null;
    }
    char[] word = new char[text.length()];
    for (int at = 0; at < word.length; at++) {
      byte one = text.bytes[text.start + at];
      word[at] = (char) (one >= 'A' && one <= 'Z' ? one + 'a' - 'A' : one);
    }
    return WORDS.get(new String(word));
  }
}
