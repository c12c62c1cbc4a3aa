package leanops.flatten;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.List;

/** A payload's bytes to the object in them, or the reason why there is none that can be stored. */
final class Payload {
  /** Containers inside containers, brackets of any kind. */
  static final int MAX_NESTING = 200;

  /** More digits than that are no number that a reader could take. */
  static final int MAX_NUMBER_DIGITS = 4300;

  private static final int SHOWN_DIGITS = 20;

  private Payload() {}

  /** The object; Refused for any bytes that are none. */
  static Members read(byte[] bytes, int size) {
    if (isBlank(bytes, size)) {
      throw new Refused(Refused.EMPTY, "the payload is empty or blank");
    }
    int bad = Utf8.firstError(bytes, size);
    if (bad >= 0) {
      throw Refused.invalid("not UTF-8: " + Utf8.reason(bytes, bad, size) + " at byte " + bad);
    }
    String text = new String(bytes, 0, size, StandardCharsets.UTF_8);
    checkNesting(text);
    Object value = StrictReader.read(text);
    checkSurrogates(text);
    checkNumbers(value, size);
    if (value instanceof Members members) {
      return members;
    }
    throw new Refused(Refused.NOT_AN_OBJECT, "valid JSON, but " + kindOf(value) + ", not an object");
  }

  private static boolean isBlank(byte[] bytes, int size) {
    for (int at = 0; at < size; at++) {
      if (bytes[at] != ' ' && (bytes[at] < '\t' || bytes[at] > '\r')) {
        return false;
      }
    }
    return true;
  }

  /** Counts brackets that stand in no string, in text that need not be JSON. */
  private static void checkNesting(String text) {
    int depth = 0;
    for (int at = 0; at < text.length(); at++) {
      char one = text.charAt(at);
      if (one == '"') {
        at = closingQuote(text, at);
      } else if (one == '}' || one == ']') {
        depth--;
      } else if ((one == '{' || one == '[') && ++depth > MAX_NESTING) {
        throw Refused.invalid(
            "nested deeper than " + MAX_NESTING + " levels at character " + text.codePointCount(0, at));
      }
    }
  }

  /** Where a string ends; one without an end goes on to the end of the text. */
  private static int closingQuote(String text, int start) {
    int at = start + 1;
    while (at < text.length() && text.charAt(at) != '"') {
      at += text.charAt(at) == '\\' ? 2 : 1;
    }
    return at;
  }

  /** Refuses half of a surrogate pair: it is no character and can't be stored as text. */
  private static void checkSurrogates(String text) {
    int at = text.indexOf('\\');
    while (at >= 0) {
      int next = afterEscape(text, at);
      if (next < 0) {
        throw Refused.invalid("a lone surrogate near character " + text.codePointCount(0, at));
      }
      at = text.indexOf('\\', next);
    }
  }

  /** Where the text goes on after an escape or a pair of them; -1 if it is half of a pair. */
  private static int afterEscape(String text, int at) {
    int code = unicodeEscape(text, at);
    if (code < 0) {
      return at + 2;
    }
    if (!Character.isSurrogate((char) code)) {
      return at + 6;
    }
    boolean isPair = Character.isHighSurrogate((char) code) && isLowSurrogate(unicodeEscape(text, at + 6));
    return isPair ? at + 12 : -1;
  }

  private static boolean isLowSurrogate(int code) {
    return code >= 0 && Character.isLowSurrogate((char) code);
  }

  /** The number in a unicode escape, or -1 if none stands there; the text is known to be JSON. */
  private static int unicodeEscape(String text, int at) {
    return text.startsWith("\\u", at) ? Integer.parseInt(text, at + 2, at + 6, 16) : -1;
  }

  /** Refuses numbers that no reader could take; of several the last is shown. */
  private static void checkNumbers(Object value, int size) {
    if (size <= MAX_NUMBER_DIGITS) {
      return;
    }
    Deque<Object> waiting = new ArrayDeque<>();
    waiting.push(value == null ? Boolean.FALSE : value);
    while (!waiting.isEmpty()) {
      Object item = waiting.pop();
      if (item instanceof NumberText number && number.digits() > MAX_NUMBER_DIGITS) {
        String shown = number.text().substring(0, SHOWN_DIGITS);
        throw Refused.invalid("a number of more than " + MAX_NUMBER_DIGITS + " digits: " + shown + "\u2026");
      }
      pushChildren(item, waiting);
    }
  }

  private static void pushChildren(Object item, Deque<Object> waiting) {
    Collection<?> children = List.of();
    if (item instanceof Members members) {
      children = members.asMap().values();
    } else if (item instanceof List<?> items) {
      children = items;
    }
    for (Object child : children) {
      if (child != null) {
        waiting.push(child);
      }
    }
  }

  private static String kindOf(Object value) {
    if (value instanceof NumberText) {
      return "a number";
    } else if (value instanceof String) {
      return "a string";
    } else if (value instanceof Boolean) {
      return "a boolean";
    }
    return value == null ? "null" : "an array";
  }
}
