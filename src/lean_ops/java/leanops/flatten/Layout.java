package leanops.flatten;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Which leaf goes to which column, and which metadata leaves the envelope may have taken. */
final class Layout implements Serializable {
  private static final long serialVersionUID = 1;

  // A blank keeps them apart from every column's name.
  private static final String[] MARKS = {"_extra", "error type", "error message"};

  private final List<String> names = new ArrayList<>();
  private final List<String> pointers = new ArrayList<>();
  private final Map<String, Integer> columns = new HashMap<>();
  private final Map<String, Integer> taken = new HashMap<>();
  private final int[][] takenByColumn;

  /**
   * A layout as its driver describes it: JSON with `columns`, pairs of pointer and name, and `taken`, a list of
   * pointers for each of the envelope's columns, first choice first.
   */
  Layout(String description) {
    Members members = StrictReader.readObject(description);
    for (Object pair : (List<?>) members.get("columns")) {
      addColumn((String) ((List<?>) pair).get(0), (String) ((List<?>) pair).get(1));
    }
    List<?> sources = (List<?>) members.get("taken");
    takenByColumn = new int[sources.size()][];
    for (int column = 0; column < takenByColumn.length; column++) {
      takenByColumn[column] = numbered((List<?>) sources.get(column));
    }
  }

  private void addColumn(String pointer, String name) {
    columns.put(pointer, names.size());
    pointers.add(pointer);
    names.add(name);
  }

  private int[] numbered(List<?> sources) {
    return sources.stream().mapToInt(pointer -> taken.computeIfAbsent((String) pointer, p -> taken.size())).toArray();
  }

  List<String> pointers() {
    return pointers;
  }

  /** The number of a leaf's column, or NONE. */
  int columnOf(String pointer) {
    return columns.getOrDefault(pointer, Place.NONE);
  }

  /** A leaf's number among those that the envelope may have taken, or NONE. */
  int takenOf(String pointer) {
    return taken.getOrDefault(pointer, Place.NONE);
  }

  /** For each column of the envelope, the numbers of the leaves it may come from. */
  int[][] takenByColumn() {
    return takenByColumn;
  }

  int takenCount() {
    return taken.size();
  }

  int extra() {
    return names.size();
  }

  int errorType() {
    return names.size() + 1;
  }

  int errorMessage() {
    return names.size() + 2;
  }

  int width() {
    return names.size() + MARKS.length;
  }

  /** A flat row: the columns, what has none, and why the payload was refused. */
  StructType rowType() {
    StructType type = new StructType();
    for (String name : names) {
      type = type.add(name, DataTypes.StringType);
    }
    for (String name : MARKS) {
      type = type.add(name, DataTypes.StringType);
    }
    return type;
  }
}
