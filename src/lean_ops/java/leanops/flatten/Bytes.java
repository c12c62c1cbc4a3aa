package leanops.flatten;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bytes that grow; emptied and filled again for every record of a task. */
final class Bytes {
  private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  byte[] data = new byte[256];
  int size;

  /** Adds a byte. */
  void add(int one) {
    reserve(1);
    data[size++] = (byte) one;
  }

  /** Adds a part of an array. */
  void add(byte[] bytes, int from, int to) {
    reserve(to - from);
    System.arraycopy(bytes, from, data, size, to - from);
    size += to - from;
  }

  /** Adds a whole array. */
  void add(byte[] bytes) {
    add(bytes, 0, bytes.length);
  }

  /** Adds a text as UTF-8. */
  void add(String text) {
    add(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Adds a character as UTF-8; it must not be half of a surrogate pair. */
  void addCodePoint(int point) {
    if (point < 0x80) {
      add(point);
    } else if (point < 0x800) {
      add(0xC0 | point >> 6);
      add(0x80 | point & 0x3F);
    } else {
      addWide(point);
    }
  }

  private void addWide(int point) {
    if (point < 0x10000) {
      add(0xE0 | point >> 12);
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | point >> 12 & 0x3F);
    }
    add(0x80 | point >> 6 & 0x3F);
    add(0x80 | point & 0x3F);
  }

  /** Adds a text as a JSON string: quoted, and escaped only where JSON asks for it. */
  void addQuoted(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    addQuoted(bytes, 0, bytes.length);
  }

  /** Adds UTF-8 text as a JSON string. */
  void addQuoted(byte[] bytes, int from, int to) {
    add('"');
    int start = from;
    for (int at = from; at < to; at++) {
      if (mustBeEscaped(bytes[at])) {
        add(bytes, start, at);
        addEscaped(bytes[at]);
        start = at + 1;
      }
    }
    add(bytes, start, to);
    add('"');
  }

  /** Whether a byte of UTF-8 text can't stand in a JSON string as it is. */
  static boolean mustBeEscaped(int one) {
    return (one >= 0 && one < ' ') || one == '"' || one == '\\';
  }

  /** Adds the escape of such a byte, the short one where there is one. */
  void addEscaped(int one) {
    add('\\');
    switch (one) {
      case '"', '\\' -> add(one);
      case '\n' -> add('n');
      case '\r' -> add('r');
      case '\t' -> add('t');
      case '\f' -> add('f');
      case '\b' -> add('b');
      default -> {
        add("u00");
        add(HEX[one >> 4]);
        add(HEX[one & 0xF]);
      }
    }
  }

  private void reserve(int more) {
    if (data.length - size < more) {
      data = Arrays.copyOf(data, Math.max(2 * data.length, Math.addExact(size, more)));
    }
  }

  @Override
  public String toString() {
    return new String(data, 0, size, StandardCharsets.UTF_8);
  }
}
