package leanops.flatten;

import java.util.Arrays;

/**
 * Writes arrays and objects of a payload as compact JSON while it reads them: key order and number text as they came.
 *
 * <p>Positions are those of the payload; -1 says that the strict reader must look.
 */
final class CompactWriter {
  private static final int MAX_LEVELS = 100;
  private static final int MAX_MEMBERS = 64;

  private byte[] json;
  private Bytes out;
  private int[] keys = new int[2 * MAX_MEMBERS];
  private int keyCount;

  /** Writes the value that begins at a position; the position after it, or -1. */
  int write(byte[] bytes, int from, Bytes target) {
    json = bytes;
    out = target;
    keyCount = 0;
    return value(from, 0);
  }

  private int value(int at, int level) {
    switch (json[at]) {
      case '"':
        return quoted(at);
      case '{':
        return level < MAX_LEVELS ? object(at, level + 1) : -1;
      case '[':
        return level < MAX_LEVELS ? array(at, level + 1) : -1;
      case 't':
        return copied(at, TextScan.afterWord(json, at, 't', 'r', 'u', 'e'));
      case 'f':
        return json[at + 1] == 'a' ? copied(at, TextScan.afterWord(json, at + 1, 'a', 'l', 's', 'e')) : -1;
      case 'n':
        return copied(at, TextScan.afterWord(json, at, 'n', 'u', 'l', 'l'));
      default:
        return number(at);
    }
  }

  private int number(int at) {
    int end = TextScan.afterNumber(json, at);
    return end - at > Payload.MAX_NUMBER_DIGITS ? -1 : copied(at, end);
  }

  private int copied(int from, int end) {
    if (end >= 0) {
      out.add(json, from, end);
    }
    return end;
  }

  private int array(int from, int level) {
    out.add('[');
    int at = TextScan.afterBlanks(json, from + 1);
    if (json[at] == ']') {
      out.add(']');
      return at + 1;
    }
    while (true) {
      at = value(at, level);
      if (at < 0) {
        return -1;
      }
      at = TextScan.afterBlanks(json, at);
      if (json[at] != ',') {
        return closed(at, ']');
      }
      out.add(',');
      at = TextScan.afterBlanks(json, at + 1);
    }
  }

  private int closed(int at, char bracket) {
    if (json[at] != bracket) {
      return -1;
    }
    out.add(bracket);
    return at + 1;
  }

  private int object(int from, int level) {
    out.add('{');
    int at = TextScan.afterBlanks(json, from + 1);
    if (json[at] == '}') {
      out.add('}');
      return at + 1;
    }
    int firstKey = keyCount;
    while (true) {
      at = member(at, level, firstKey);
      if (at < 0) {
        return -1;
      }
      at = TextScan.afterBlanks(json, at);
      if (json[at] != ',') {
        keyCount = firstKey;
        return closed(at, '}');
      }
      out.add(',');
      at = TextScan.afterBlanks(json, at + 1);
    }
  }

  private int member(int from, int level, int firstKey) {
    int start = out.size;
    int at = json[from] == '"' ? quoted(from) : -1;
    if (at < 0 || !isNewKey(start, firstKey)) {
      return -1;
    }
    at = TextScan.afterBlanks(json, at);
    if (json[at] != ':') {
      return -1;
    }
    out.add(':');
    return value(TextScan.afterBlanks(json, at + 1), level);
  }

  /** Takes in the key just written; false if its object had it before, or has more keys than are compared here. */
  private boolean isNewKey(int start, int firstKey) {
    if (keyCount - firstKey >= 2 * MAX_MEMBERS) {
      return false;
    }
    for (int key = firstKey; key < keyCount; key += 2) {
      if (Arrays.equals(out.data, keys[key], keys[key + 1], out.data, start, out.size)) {
        return false;
      }
    }
    if (keyCount == keys.length) {
      keys = Arrays.copyOf(keys, 2 * keys.length);
    }
    keys[keyCount++] = start;
    keys[keyCount++] = out.size;
    return true;
  }

  /** Writes the string that begins at a quote as a JSON string that is escaped only where JSON asks for it. */
  private int quoted(int from) {
    int start = from;
    int at = TextScan.plainEnd(json, from + 1);
    while (json[at] == '\\') {
      out.add(json, start, at);
      int point = escaped(at);
      if (point < 0) {
        return -1;
      }
      if (Bytes.mustBeEscaped(point)) {
        out.addEscaped(point);
      } else {
        out.addCodePoint(point);
      }
      start = afterEscape(at, point);
      at = TextScan.plainEnd(json, start);
    }
    return json[at] == '"' ? copied(start, at + 1) : -1;
  }

  /** Writes a string's text without escapes; `from` is its first byte, `firstEscape` its first backslash. */
  int unescape(byte[] bytes, int from, int firstEscape, Bytes target) {
    json = bytes;
    out = target;
    int start = from;
    int at = firstEscape;
    while (json[at] == '\\') {
      out.add(json, start, at);
      int point = escaped(at);
      if (point < 0) {
        return -1;
      }
      out.addCodePoint(point);
      start = afterEscape(at, point);
      at = TextScan.plainEnd(json, start);
    }
    out.add(json, start, at);
    return json[at] == '"' ? at + 1 : -1;
  }

  /** The character that an escape or a pair of them stands for, or -1 if it is none. */
  private int escaped(int at) {
    if (json[at + 1] != 'u') {
      int found = "\"\\/bfnrt".indexOf(json[at + 1]);
      return found < 0 ? -1 : "\"\\/\b\f\n\r\t".charAt(found);
    }
    int code = TextScan.hexNumber(json, at + 2);
    if (code < 0 || !Character.isSurrogate((char) code)) {
      return code;
    }
    int low = json[at + 6] == '\\' && json[at + 7] == 'u' ? TextScan.hexNumber(json, at + 8) : -1;
    boolean isPair = low >= 0 && Character.isSurrogatePair((char) code, (char) low);
    return isPair ? Character.toCodePoint((char) code, (char) low) : -1;
  }

  private int afterEscape(int at, int point) {
    if (json[at + 1] != 'u') {
      return at + 2;
    }
    return point < Character.MIN_SUPPLEMENTARY_CODE_POINT ? at + 6 : at + 12;
  }
}
