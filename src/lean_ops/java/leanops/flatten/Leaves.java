package leanops.flatten;

import java.util.Arrays;

/** The leaves of one record: places, kinds and texts, in the order in which they stand in the payload. */
final class Leaves {
  /** Texts that do not stand in the payload as they are: unescaped strings, compact arrays and objects. */
  final Bytes made = new Bytes();

  private byte[] payload;
  private Place[] places = new Place[64];
  private Kind[] kinds = new Kind[64];
  private boolean[] areMade = new boolean[64];
  private int[] starts = new int[64];
  private int[] ends = new int[64];
  private int count;

  /** Begins the record of a payload; leaves found so far are forgotten. */
  void begin(byte[] bytes) {
    payload = bytes;
    made.size = 0;
    count = 0;
  }

  int count() {
    return count;
  }

  /** Takes in a leaf whose text stands in the payload. */
  void add(Place place, Kind kind, int start, int end) {
    put(place, kind, start, end, false);
  }

  /** Takes in a leaf whose text was made, from a position to the end of what is made so far. */
  void addMade(Place place, Kind kind, int start) {
    put(place, kind, start, made.size, true);
  }

  private void put(Place place, Kind kind, int start, int end, boolean isMade) {
    if (count == places.length) {
      grow(2 * count);
    }
    places[count] = place;
    kinds[count] = kind;
    areMade[count] = isMade;
    starts[count] = start;
    ends[count] = end;
    count++;
  }

  private void grow(int size) {
    places = Arrays.copyOf(places, size);
    kinds = Arrays.copyOf(kinds, size);
    areMade = Arrays.copyOf(areMade, size);
    starts = Arrays.copyOf(starts, size);
    ends = Arrays.copyOf(ends, size);
  }

  Place place(int leaf) {
    return places[leaf];
  }

  Kind kind(int leaf) {
    return kinds[leaf];
  }

  /** The array that holds a leaf's text. */
  byte[] bytes(int leaf) {
    return areMade[leaf] ? made.data : payload;
  }

  int start(int leaf) {
    return starts[leaf];
  }

  int end(int leaf) {
    return ends[leaf];
  }
}
