package leanops.flatten;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** A place in payloads: its pointer, its column if it has one, and how often it held what. */
final class Place {
  static final int NONE = -1;

  // A key that is not among so many neighbours is looked for with more care: no keys can be made to collide.
  private static final int MAX_PROBES = 8;
  private static final int FIRST_TABLE = 16;

  final String pointer;
  final int depth;

  /** The number of its column, or NONE. */
  final int column;

  /** Its number among the metadata leaves that the envelope may have taken, or NONE. */
  final int taken;

  /** How many records held which kind of value here. */
  final long[] kinds = new long[Kind.values().length];

  /** The record that last went through here: twice in one record means a key was given twice. */
  long lastRecord;

  /** The key that last stood first in an object here. */
  Spelling first;

  private final Map<String, Place> children = new HashMap<>(2);
  private Spelling[] table;
  private int spellings;
  private byte[] quotedPointer;

  Place(String pointer, int depth, int column, int taken) {
    this.pointer = pointer;
    this.depth = depth;
    this.column = column;
    this.taken = taken;
  }

  /** The place under a key, or null if there is none yet. */
  Place child(String key) {
    return children.get(key);
  }

  void addChild(String key, Place child) {
    children.put(key, child);
  }

  /** Whether any record had a value here. */
  boolean wasSeen() {
    for (long records : kinds) {
      if (records > 0) {
        return true;
      }
    }
    return false;
  }

  /** The pointer as a JSON string. */
  byte[] quotedPointer() {
    if (quotedPointer == null) {
      Bytes quoted = new Bytes();
      quoted.addQuoted(pointer);
      quotedPointer = Arrays.copyOf(quoted.data, quoted.size);
    }
    return quotedPointer;
  }

  /** The child whose key is spelled so, or null if that spelling is not known. */
  Spelling find(byte[] json, int from, int to) {
    if (table == null) {
      return null;
    }
    int at = hash(json, from, to);
    for (int probe = 0; probe < MAX_PROBES; probe++) {
      Spelling found = table[at + probe & table.length - 1];
      if (found == null || Arrays.equals(found.raw, 0, found.raw.length, json, from, to)) {
        return found;
      }
    }
    return null;
  }

  /** Remembers how a child's key is spelled. */
  void addSpelling(Spelling spelling) {
    if (table == null) {
      table = new Spelling[FIRST_TABLE];
    } else if (2 * spellings >= table.length) {
      grow();
    }
    insert(spelling);
    spellings++;
  }

  private void grow() {
    Spelling[] before = table;
    table = new Spelling[2 * before.length];
    for (Spelling spelling : before) {
      if (spelling != null) {
        insert(spelling);
      }
    }
  }

  private void insert(Spelling spelling) {
    int at = hash(spelling.raw, 0, spelling.raw.length);
    for (int probe = 0; probe < MAX_PROBES; probe++) {
      int slot = at + probe & table.length - 1;
      if (table[slot] == null) {
        table[slot] = spelling;
        return;
      }
    }
  }

  private static int hash(byte[] bytes, int from, int to) {
    int hash = to - from;
    for (int at = from; at < to; at++) {
      hash = 31 * hash + bytes[at];
    }
    return hash ^ hash >>> 15;
  }
}
