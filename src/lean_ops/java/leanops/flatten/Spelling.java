package leanops.flatten;

import java.util.Arrays;

/** A key as it is written in payloads, escapes and all, and the place it leads to. */
final class Spelling {
  final byte[] raw;
  final Place place;

  /** The key that came after this one last time: most often it does so again. */
  Spelling next;

  // The first eight bytes of the key and its closing quote, and which of them count.
  private final long head;
  private final long mask;

  Spelling(byte[] raw, Place place) {
    this.raw = raw;
    this.place = place;
    byte[] quoted = Arrays.copyOf(raw, raw.length + 1 + Long.BYTES);
    quoted[raw.length] = '"';
    mask = raw.length + 1 < Long.BYTES ? (1L << Byte.SIZE * (raw.length + 1)) - 1 : -1;
    head = TextScan.word(quoted, 0) & mask;
  }

  /** Whether exactly this key and its closing quote stand at a position of padded text. */
  boolean isAt(byte[] json, int at) {
    if ((TextScan.word(json, at) & mask) != head) {
      return false;
    }
    int end = at + raw.length;
    if (raw.length < Long.BYTES) {
      return true;
    }
    return end < json.length
        && json[end] == '"'
        && Arrays.equals(json, at + Long.BYTES, end, raw, Long.BYTES, raw.length);
  }
}
