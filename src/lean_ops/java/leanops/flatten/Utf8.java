package leanops.flatten;

/** Whether bytes are UTF-8, and what is said of those that are not. */
final class Utf8 {
  private Utf8() {}

  /** Where the first sequence begins that is no character, or -1 if all are; the bytes are padded. */
  static int firstError(byte[] bytes, int size) {
    int at = TextScan.asciiEnd(bytes, 0, size);
    while (at < size) {
      int length = bytes[at] >= 0 ? 1 : sequenceLength(bytes, at, size);
      if (length <= 0) {
        return at;
      }
      at += length;
      if (length > 1) {
        at = TextScan.asciiEnd(bytes, at, size);
      }
    }
    return -1;
  }

  /** What is wrong with the sequence that begins at an error. */
  static String reason(byte[] bytes, int at, int size) {
    int first = bytes[at] & 0xFF;
    if (first < 0xC2 || first > 0xF4) {
      return "invalid start byte";
    }
    int wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (int next = 1; next < wanted; next++) {
      if (at + next == size) {
        return "unexpected end of data";
      }
      if (!continues(bytes, at, next)) {
        break;
      }
    }
    return "invalid continuation byte";
  }

  /** The length of the character that begins with a byte past ASCII; 0 if it is none. */
  private static int sequenceLength(byte[] bytes, int at, int size) {
    int first = bytes[at] & 0xFF;
    if (first < 0xC2 || first > 0xF4) {
      return 0;
    }
    int wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (int next = 1; next < wanted; next++) {
      if (at + next >= size || !continues(bytes, at, next)) {
        return 0;
      }
    }
    return wanted;
  }

  /** Whether a byte may stand at its position in a sequence: no long forms, no surrogates, nothing past 10FFFF. */
  private static boolean continues(byte[] bytes, int at, int next) {
    int one = bytes[at + next] & 0xFF;
    if (next > 1) {
      return one >= 0x80 && one < 0xC0;
    }
    int least = bytes[at] == (byte) 0xE0 ? 0xA0 : bytes[at] == (byte) 0xF0 ? 0x90 : 0x80;
    int most = bytes[at] == (byte) 0xED ? 0x9F : bytes[at] == (byte) 0xF4 ? 0x8F : 0xBF;
    return one >= least && one <= most;
  }
}
