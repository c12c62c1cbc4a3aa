package leanops.judge;

import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** The bytes of a text without the blanks around it; one object is loaded again for every value of a task. */
final class TextBytes {
  byte[] bytes = new byte[64];
  int start;
  int end;

  /** Whether a byte is one of those that mean nothing around a value: space, tab, LF, VT, FF, CR. */
  static boolean isBlank(byte one) {
    return one == ' ' || (one >= '\t' && one <= '\r');
  }

  /** Whether there is nothing in a text. */
  static boolean isBlank(UTF8String text) {
    int size = text.numBytes();
    for (int at = 0; at < size; at++) {
      if (!isBlank(text.getByte(at))) {
        return false;
      }
    }
    return true;
  }

  /** Takes a text in. */
  TextBytes load(UTF8String text) {
    int size = text.numBytes();
    if (bytes.length < size) {
      bytes = new byte[size];
    }
    text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET);
    start = 0;
    end = size;
    trim();
    return this;
  }

  private void trim() {
    while (start < end && isBlank(bytes[start])) {
      start++;
    }
    while (start < end && isBlank(bytes[end - 1])) {
      end--;
    }
  }

  int length() {
    return end - start;
  }

  /** The digit at a place, or -1 if there is none. */
  int digit(int at) {
    if (at >= end) {
      return -1;
    }
    int digit = bytes[at] - '0';
    return digit >= 0 && digit <= 9 ? digit : -1;
  }

  /** The number that two digits make, or -1 if there are not two. */
  int twoDigits(int at) {
    int tens = digit(at);
    int ones = digit(at + 1);
    return tens < 0 || ones < 0 ? -1 : 10 * tens + ones;
  }

  /** Whether one of two bytes stands at a place. */
  boolean isAt(int at, char one, char other) {
    return at < end && (bytes[at] == one || bytes[at] == other);
  }
}
