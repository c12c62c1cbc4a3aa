package leanops.flatten;

import java.util.LinkedHashMap;
import java.util.Map;

/** An object's members; of a key that is given twice the last value, where the first one stood. */
final class Members {
  private final Map<String, Object> values = new LinkedHashMap<>();
  private Map<String, String> oddSpellings;

  /** Takes a member in; `raw` is how its key is written in the text. */
  void put(String key, String raw, Object value) {
    values.put(key, value);
    if (!raw.equals(key)) {
      oddSpellings = oddSpellings == null ? new LinkedHashMap<>() : oddSpellings;
      oddSpellings.put(key, raw);
    }
  }

  Object get(String key) {
    return values.get(key);
  }

  boolean isEmpty() {
    return values.isEmpty();
  }

  /** Keys and values, null among them, in their order. */
  Map<String, Object> asMap() {
    return values;
  }

  /** One way in which the text writes a key. */
  String spellingOf(String key) {
    return oddSpellings == null ? key : oddSpellings.getOrDefault(key, key);
  }
}
