package leanops.flatten;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The tree of places that a task knows: those of the columns, and the others it has met, up to a bound. */
final class Places {
  /** Objects further down are text. */
  static final int MAX_DEPTH = 5;

  private static final int MAX_PLACES = 20_000;
  private static final int MAX_BYTES = 16 * 1024 * 1024;

  /** Where payloads begin. */
  final Place root = new Place("", 0, Place.NONE, Place.NONE);

  private final Layout layout;
  private final List<Place> all = new ArrayList<>();
  private int roomForPlaces;
  private int roomForBytes;

  /** A tree that knows the places of the columns, however many places payloads bring. */
  Places(Layout layout) {
    this.layout = layout;
    for (String pointer : layout.pointers()) {
      roomForPlaces = MAX_PLACES;
      roomForBytes = Integer.MAX_VALUE;
      Place place = root;
      for (String key : keysOf(pointer)) {
        place = under(place, key, key);
      }
    }
    roomForPlaces = MAX_PLACES;
    roomForBytes = MAX_BYTES;
  }

  /** Every place that is remembered: the columns', then the others in the order of discovery. */
  List<Place> all() {
    return all;
  }

  /**
   * The place under a key that is spelled as `raw` in the payload.
   *
   * <p>Past the bound a place is made for this record only: its leaves are written and not counted.
   */
  Place under(Place parent, String key, String raw) {
    Place child = parent.child(key);
    boolean isNew = child == null;
    if (isNew) {
      String pointer = parent.pointer + "/" + key.replace("~", "~0").replace("/", "~1");
      child = new Place(pointer, parent.depth + 1, layout.columnOf(pointer), layout.takenOf(pointer));
    }
    byte[] spelled = raw.getBytes(StandardCharsets.UTF_8);
    if (parent.find(spelled, 0, spelled.length) == null && isRoomFor(child, spelled)) {
      if (isNew) {
        parent.addChild(key, child);
        all.add(child);
      }
      parent.addSpelling(new Spelling(spelled, child));
      roomForPlaces--;
      roomForBytes -= spelled.length + child.pointer.length();
    }
    return child;
  }

  private boolean isRoomFor(Place child, byte[] spelled) {
    return roomForPlaces > 0 && roomForBytes >= spelled.length + child.pointer.length();
  }

  private static List<String> keysOf(String pointer) {
    List<String> keys = new ArrayList<>();
    for (String step : pointer.substring(1).split("/", -1)) {
      keys.add(step.replace("~1", "/").replace("~0", "~"));
    }
    return keys;
  }
}
