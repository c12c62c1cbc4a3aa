package leanops.judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** What a rule asks of a column's text (null if it is missing) and of the value that was made of it. */
@FunctionalInterface
interface Check {
  /** Whether the rule is broken. */
  boolean isBroken(UTF8String text, Object value);

  /** The check that a rule of the plan names; its literals are read as the column's own texts are. */
  static Check of(JsonNode rule, Literals literals) {
    return switch (rule.get("check").asText()) {
      case "presence" -> (text, value) -> text == null;
      case "type" -> (text, value) -> text != null && value == null;
      case "enum" -> oneOf(rule.get("literals"), literals);
      case "length" -> tooLong(rule.get("longest").asInt());
      case "pattern" -> noMatch(rule.get("pattern").asText(), rule.path("longest").asInt(Integer.MAX_VALUE));
      case "min" -> bound(literals.of(rule.get("literal")), 1);
      case "max" -> bound(literals.of(rule.get("literal")), -1);
      default -> throw new IllegalArgumentException("no check " + rule);
    };
  }

  private static Check oneOf(JsonNode choices, Literals literals) {
    Set<Object> allowed = new HashSet<>();
    choices.forEach(choice -> allowed.add(comparable(literals.of(choice))));
    return (text, value) -> value != null && !allowed.contains(comparable(value));
  }

  private static Check tooLong(int longest) {
    return (text, value) -> value != null && isLonger((UTF8String) value, longest);
  }

  private static boolean isLonger(UTF8String value, int longest) {
    return value.numBytes() > longest && value.numChars() > longest;
  }

  /** A value that is too long for Java's stack is not asked about. */
  private static Check noMatch(String pattern, int longest) {
    Matcher matcher = Pattern.compile(pattern).matcher("");
    return (text, value) ->
        value != null && !isLonger((UTF8String) value, longest) && !matcher.reset(value.toString()).find();
  }

  /** The side on which a literal lies of every value that is allowed, unless they are equal: 1 below, -1 above. */
  private static Check bound(Object literal, int side) {
    Comparable<Object> limit = comparable(literal);
    return (text, value) -> value != null && limit.compareTo(comparable(value)) * side > 0;
  }

  /** Values that are equal are so as these, and they are in order: zero has no sign. */
  @SuppressWarnings("unchecked")
  private static Comparable<Object> comparable(Object value) {
    if (value instanceof Double number) {
      return (Comparable<Object>) (Object) (number + 0.0);
    }
    if (value instanceof Decimal number) {
      return (Comparable<Object>) (Object) number.toJavaBigDecimal();
    }
    return (Comparable<Object>) value;
  }

  /** Reads the literals of a column's rules. */
  @FunctionalInterface
  interface Literals {
    /** The value that a literal's text stands for. */
    Object of(JsonNode text);
  }
}
