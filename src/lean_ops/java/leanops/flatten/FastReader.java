package leanops.flatten;

/**
 * Reads a payload straight into leaves, as long as it is like payloads before it: JSON without faults, keys that are
 * known and given once.
 *
 * <p>It refuses nothing itself: whatever it is not made for, it hands back for the strict reader to look at.
 */
final class FastReader {
  private final Place root;
  private final CompactWriter compact;
  private byte[] json;
  private int at;
  private long record;
  private Leaves leaves;

  FastReader(Place root) {
    this.root = root;
    compact = new CompactWriter();
  }

  /**
   * Adds the leaves of a payload that is padded; false says only that another reader must look, and that what was
   * added is to be forgotten.
   */
  boolean read(byte[] bytes, int size, Leaves found) {
    json = bytes;
    at = 0;
    leaves = found;
    record++;
    skipBlanks();
    if (json[at] != '{' || Utf8.firstError(bytes, size) >= 0) {
      return false;
    }
    at++;
    skipBlanks();
    if (json[at] == '}') {
      at++;
    } else if (!members(root)) {
      return false;
    }
    skipBlanks();
    return at == size;
  }

  /** Reads members up to the closing bracket; stands at the first key. */
  private boolean members(Place place) {
    Spelling before = null;
    while (true) {
      Spelling key = key(place, before);
      if (key == null || key.place.lastRecord == record) {
        return false;
      }
      key.place.lastRecord = record;
      before = key;
      skipBlanks();
      if (json[at++] != ':') {
        return false;
      }
      skipBlanks();
      if (!value(key.place)) {
        return false;
      }
      skipBlanks();
      byte next = json[at++];
      if (next != ',') {
        return next == '}';
      }
      skipBlanks();
    }
  }

  /** The key that stands here, if it is known; most often it is the one that came next in the record before. */
  private Spelling key(Place place, Spelling before) {
    if (json[at] != '"') {
      return null;
    }
    Spelling expected = before == null ? place.first : before.next;
    if (expected == null || !expected.isAt(json, at + 1)) {
      expected = place.find(json, at + 1, closingQuote(at + 1));
      if (expected == null) {
        return null;
      }
      if (before == null) {
        place.first = expected;
      } else {
        before.next = expected;
      }
    }
    at += expected.raw.length + 2;
    return expected;
  }

  /** Where the string ends that begins here; a text without an end is searched no further than its padding. */
  private int closingQuote(int from) {
    int end = from;
    while (json[end] != '"' && json[end] != 0) {
      end += json[end] == '\\' && json[end + 1] != 0 ? 2 : 1;
    }
    return end;
  }

  private boolean value(Place place) {
    switch (json[at]) {
      case '"':
        return string(place);
      case '{':
        return object(place);
      case '[':
        return compact(place, Kind.ARRAY);
      case 't':
        return word(place, TextScan.afterWord(json, at, 't', 'r', 'u', 'e'));
      case 'f':
        return json[at + 1] == 'a' && word(place, TextScan.afterWord(json, at + 1, 'a', 'l', 's', 'e'));
      case 'n':
        at = TextScan.afterWord(json, at, 'n', 'u', 'l', 'l');
        return at >= 0;
      default:
        return number(place);
    }
  }

  private boolean word(Place place, int end) {
    if (end < 0) {
      return false;
    }
    leaves.add(place, Kind.BOOLEAN, at, end);
    at = end;
    return true;
  }

  private boolean number(Place place) {
    int end = TextScan.afterNumber(json, at);
    if (end < 0 || end - at > Payload.MAX_NUMBER_DIGITS) {
      return false;
    }
    leaves.add(place, Kind.NUMBER, at, end);
    at = end;
    return true;
  }

  private boolean string(Place place) {
    int start = at + 1;
    int end = TextScan.plainEnd(json, start);
    if (json[end] == '"') {
      leaves.add(place, Kind.STRING, start, end);
      at = end + 1;
      return true;
    }
    int made = leaves.made.size;
    at = compact.unescape(json, start, end, leaves.made);
    if (at < 0) {
      return false;
    }
    leaves.addMade(place, Kind.STRING, made);
    return true;
  }

  private boolean object(Place place) {
    int start = at;
    at++;
    skipBlanks();
    if (json[at] == '}') {
      at++;
      int made = leaves.made.size;
      leaves.made.add('{');
      leaves.made.add('}');
      leaves.addMade(place, Kind.OBJECT, made);
      return true;
    }
    if (place.depth < Places.MAX_DEPTH) {
      return members(place);
    }
    at = start;
    return compact(place, Kind.OBJECT);
  }

  private boolean compact(Place place, Kind kind) {
    int made = leaves.made.size;
    at = compact.write(json, at, leaves.made);
    if (at < 0) {
      return false;
    }
    leaves.addMade(place, kind, made);
    return true;
  }

  private void skipBlanks() {
    at = TextScan.afterBlanks(json, at);
  }
}
