package leanops.flatten;

import java.util.List;
import java.util.Map;

/** Finds the leaves of a payload that was read into a tree, and makes the places that it brings. */
final class TreeWalk {
  private final Places places;

  TreeWalk(Places places) {
    this.places = places;
  }

  /** Adds the leaves of an object that stands at a place. */
  void walk(Members members, Place place, Leaves leaves) {
    for (Map.Entry<String, Object> member : members.asMap().entrySet()) {
      Object value = member.getValue();
      if (value == null) {
        continue;
      }
      Place child = places.under(place, member.getKey(), members.spellingOf(member.getKey()));
      if (value instanceof Members inner && !inner.isEmpty() && child.depth < Places.MAX_DEPTH) {
        walk(inner, child, leaves);
      } else {
        addLeaf(child, value, leaves);
      }
    }
  }

  private static void addLeaf(Place place, Object value, Leaves leaves) {
    int start = leaves.made.size;
    if (value instanceof String text) {
      leaves.made.add(text);
    } else {
      addCompact(value, leaves.made);
    }
    leaves.addMade(place, kindOf(value), start);
  }

  private static Kind kindOf(Object value) {
    if (value instanceof String) {
      return Kind.STRING;
    } else if (value instanceof NumberText) {
      return Kind.NUMBER;
    } else if (value instanceof Boolean) {
      return Kind.BOOLEAN;
    }
    return value instanceof Members ? Kind.OBJECT : Kind.ARRAY;
  }

  /** Adds a value as compact JSON: key order and number text as they came. */
  private static void addCompact(Object value, Bytes out) {
    if (value instanceof String text) {
      out.addQuoted(text);
    } else if (value instanceof NumberText number) {
      out.add(number.text());
    } else if (value instanceof Members members) {
      addObject(members, out);
    } else if (value instanceof List<?> items) {
      addArray(items, out);
    } else {
      out.add(String.valueOf(value));
    }
  }

  private static void addObject(Members members, Bytes out) {
    char before = '{';
    for (Map.Entry<String, Object> member : members.asMap().entrySet()) {
      out.add(before);
      out.addQuoted(member.getKey());
      out.add(':');
      addCompact(member.getValue(), out);
      before = ',';
    }
    out.add(members.isEmpty() ? "{}" : "}");
  }

  private static void addArray(List<?> items, Bytes out) {
    char before = '[';
    for (Object item : items) {
      out.add(before);
      addCompact(item, out);
      before = ',';
    }
    out.add(items.isEmpty() ? "[]" : "]");
  }
}
