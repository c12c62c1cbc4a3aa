package leanops.flatten;

import java.util.ArrayList;
import java.util.List;

/**
 * Reads any JSON text into a tree, or says exactly where and why it is none; fit for hostile text, not for speed.
 *
 * <p>Values are Members, List, String, NumberText, Boolean and null. Words and places of errors are those of Python's
 * json module, in which users know them.
 */
final class StrictReader {
  private static final String EXPECTING_VALUE = "Expecting value";

  private final String text;
  private int at;

  private StrictReader(String text) {
    this.text = text;
  }

  /** The value of a text that has been found to be nested no deeper than this can follow. */
  static Object read(String text) {
    StrictReader reader = new StrictReader(text);
    reader.skipBlanks();
    Object value = reader.value();
    reader.skipBlanks();
    if (reader.at < text.length()) {
      throw reader.error("Extra data", reader.at);
    }
    return value;
  }

  /** The object in a text of our own making. */
  static Members readObject(String text) {
    return (Members) read(text);
  }

  private Object value() {
    return switch (peek()) {
      case '"' -> string();
      case '{' -> object();
      case '[' -> array();
      case 'n' -> word("null", null);
      case 't' -> word("true", Boolean.TRUE);
      case 'f' -> word("false", Boolean.FALSE);
      case 'N' -> constant("NaN");
      case 'I' -> constant("Infinity");
      case '-' -> text.startsWith("-Infinity", at) ? constant("-Infinity") : number();
      default -> number();
    };
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) {
      throw error(EXPECTING_VALUE, at);
    }
    at += word.length();
    return value;
  }

  private Object constant(String name) {
    if (!text.startsWith(name, at)) {
      throw error(EXPECTING_VALUE, at);
    }
    throw Refused.invalid(name + " is not a JSON value");
  }

  private Members object() {
    Members members = new Members();
    at++;
    skipBlanks();
    if (peek() == '}') {
      at++;
      return members;
    }
    while (true) {
      member(members);
      skipBlanks();
      if (peek() == '}') {
        at++;
        return members;
      }
      comma();
    }
  }

  private void member(Members members) {
    if (peek() != '"') {
      throw error("Expecting property name enclosed in double quotes", at);
    }
    int start = at + 1;
    String key = string();
    String raw = text.substring(start, at - 1);
    skipBlanks();
    if (peek() != ':') {
      throw error("Expecting ':' delimiter", at);
    }
    at++;
    skipBlanks();
    members.put(key, raw, value());
  }

  private List<Object> array() {
    List<Object> items = new ArrayList<>();
    at++;
    skipBlanks();
    if (peek() == ']') {
      at++;
      return items;
    }
    while (true) {
      items.add(value());
      skipBlanks();
      if (peek() == ']') {
        at++;
        return items;
      }
      comma();
    }
  }

  private void comma() {
    if (peek() != ',') {
      throw error("Expecting ',' delimiter", at);
    }
    at++;
    skipBlanks();
  }

  private String string() {
    int start = at++;
    StringBuilder decoded = null;
    int from = at;
    while (true) {
      int one = peek();
      if (one == '"') {
        break;
      }
      if (one < 0 || (one == '\\' && at + 1 == text.length())) {
        throw error("Unterminated string starting at", start);
      }
      if (one < ' ') {
        throw error("Invalid control character at", at);
      }
      if (one == '\\') {
        decoded = decoded == null ? new StringBuilder() : decoded;
        decoded.append(text, from, at).append(escape());
        from = at;
      } else {
        at++;
      }
    }
    String rest = text.substring(from, at++);
    return decoded == null ? rest : decoded.append(rest).toString();
  }

  private char escape() {
    char one = text.charAt(at + 1);
    if (one == 'u') {
      return unicodeEscape();
    }
    int found = "\"\\/bfnrt".indexOf(one);
    if (found < 0) {
      throw error("Invalid \\escape", at);
    }
    at += 2;
    return "\"\\/\b\f\n\r\t".charAt(found);
  }

  private char unicodeEscape() {
    int code = 0;
    for (int digit = at + 2; digit < at + 6; digit++) {
      // The last four characters of a text are no escape: there must be a quote behind it.
      int value = at + 6 < text.length() ? hexDigit(text.charAt(digit)) : -1;
      if (value < 0) {
        throw error("Invalid \\uXXXX escape", at + 1);
      }
      code = code << 4 | value;
    }
    at += 6;
    return (char) code;
  }

  /** The value of an ASCII hexadecimal digit, or -1. */
  static int hexDigit(int one) {
    if (one >= '0' && one <= '9') {
      return one - '0';
    }
    int letter = one | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
  }

  private NumberText number() {
    int start = at;
    int end = start + (peek() == '-' ? 1 : 0);
    int afterWhole = charAt(end) == '0' ? end + 1 : afterDigits(end);
    if (afterWhole == end) {
      throw error(EXPECTING_VALUE, start);
    }
    end = afterWhole;
    if (charAt(end) == '.' && afterDigits(end + 1) > end + 1) {
      end = afterDigits(end + 1);
    }
    at = afterExponent(end);
    return new NumberText(text.substring(start, at));
  }

  private int afterExponent(int end) {
    if (charAt(end) != 'e' && charAt(end) != 'E') {
      return end;
    }
    int digits = end + (charAt(end + 1) == '-' || charAt(end + 1) == '+' ? 2 : 1);
    return afterDigits(digits) > digits ? afterDigits(digits) : end;
  }

  private int afterDigits(int from) {
    int end = from;
    while (charAt(end) >= '0' && charAt(end) <= '9') {
      end++;
    }
    return end;
  }

  private void skipBlanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') {
      at++;
    }
  }

  private int peek() {
    return charAt(at);
  }

  private int charAt(int index) {
    return index < text.length() ? text.charAt(index) : -1;
  }

  private Refused error(String words, int index) {
    if (text.startsWith("\ufeff")) {
      return Refused.invalid("a byte-order mark stands before the JSON text");
    }
    String before = text.substring(0, index);
    long line = before.chars().filter(one -> one == '\n').count() + 1;
    int column = before.codePointCount(before.lastIndexOf('\n') + 1, index) + 1;
    int character = before.codePointCount(0, index);
    return Refused.invalid(words + ": line " + line + " column " + column + " (character " + character + ")");
  }
}
