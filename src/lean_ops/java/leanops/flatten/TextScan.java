package leanops.flatten;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Steps over pieces of JSON text that has eight zeros behind its end, eight bytes at a time where that pays. */
final class TextScan {
  /** As many zeros must stand behind the text: no JSON goes on there, so that no step asks where the end is. */
  static final int PADDING = 8;

  private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ONES = 0x0101010101010101L;
  private static final long HIGHS = 0x80L * ONES;

  private TextScan() {}

  /** Eight bytes as a number, the first one lowest. */
  static long word(byte[] bytes, int at) {
    return (long) WORD.get(bytes, at);
  }

  /** Where the first byte past ASCII is at the earliest: the start of its word; the size if there is none. */
  static int asciiEnd(byte[] bytes, int from, int size) {
    int at = from;
    while (at < size && (word(bytes, at) & HIGHS) == 0) {
      at += Long.BYTES;
    }
    return Math.min(at, size);
  }

  /** After the white space that begins here, if there is any. */
  static int afterBlanks(byte[] json, int from) {
    int at = from;
    while (json[at] == ' ' || json[at] == '\n' || json[at] == '\r' || json[at] == '\t') {
      at++;
    }
    return at;
  }

  /** After a word of four letters, or -1 if it does not stand here. */
  static int afterWord(byte[] json, int at, char one, char two, char three, char four) {
    boolean isThere = json[at] == one && json[at + 1] == two && json[at + 2] == three && json[at + 3] == four;
    return isThere ? at + 4 : -1;
  }

  /** After the number that begins here, or -1 if there is none. */
  static int afterNumber(byte[] json, int from) {
    int start = json[from] == '-' ? from + 1 : from;
    int at = json[start] == '0' ? start + 1 : afterDigits(json, start);
    if (at == start) {
      return -1;
    }
    if (json[at] == '.') {
      int end = afterDigits(json, at + 1);
      at = end > at + 1 ? end : at; // what is no fraction is a fault that whoever reads on will find
    }
    return json[at] == 'e' || json[at] == 'E' ? afterExponent(json, at) : at;
  }

  private static int afterExponent(byte[] json, int from) {
    int digits = json[from + 1] == '-' || json[from + 1] == '+' ? from + 2 : from + 1;
    int end = afterDigits(json, digits);
    return end > digits ? end : from;
  }

  private static int afterDigits(byte[] json, int from) {
    int at = from;
    while (json[at] >= '0' && json[at] <= '9') {
      at++;
    }
    return at;
  }

  /** The first byte of a string that is not simply itself: a quote, a backslash, or a control character. */
  static int plainEnd(byte[] json, int from) {
    int at = from;
    while (true) {
      long found = special(word(json, at));
      if (found != 0) {
        return at + (Long.numberOfTrailingZeros(found) >>> 3);
      }
      at += Long.BYTES;
    }
  }

  /** A word whose lowest bit that is set lies in the first byte that must be escaped; 0 if there is none. */
  private static long special(long word) {
    long quotes = word ^ '"' * ONES;
    long backslashes = word ^ '\\' * ONES;
    long controls = (word - ' ' * ONES) & ~word;
    return ((quotes - ONES) & ~quotes | (backslashes - ONES) & ~backslashes | controls) & HIGHS;
  }

  /** The number in the four digits of a unicode escape, or -1 if they are none. */
  static int hexNumber(byte[] json, int from) {
    int code = 0;
    for (int at = from; at < from + 4; at++) {
      int digit = StrictReader.hexDigit(json[at]);
      if (digit < 0) {
        return -1;
      }
      code = code << 4 | digit;
    }
    return code;
  }
}
