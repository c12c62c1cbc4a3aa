package leanops.flatten;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.types.UTF8String;

/** Makes the flat row of each record; counts at each place what it held. */
final class FlatRow {
  private static final int FIRST_BYTES = 1024;

  private final Layout layout;
  private final UnsafeRowWriter writer;
  private final boolean[] isSet;
  private final int[] takenLeaves;
  private final Bytes extra = new Bytes();

  FlatRow(Layout layout) {
    this.layout = layout;
    writer = new UnsafeRowWriter(layout.width(), FIRST_BYTES);
    isSet = new boolean[layout.width()];
    takenLeaves = new int[layout.takenCount()];
  }

  /** The row of a record's leaves; `envelope` has the values that may have been taken from them. */
  UnsafeRow of(Leaves leaves, UTF8String[] envelope) {
    begin();
    boolean hasTaken = false;
    for (int leaf = 0; leaf < leaves.count(); leaf++) {
      if (leaves.place(leaf).taken == Place.NONE) {
        put(leaves, leaf);
      } else {
        hasTaken = true;
      }
    }
    if (hasTaken) {
      putNotTaken(leaves, envelope);
    }
    return finish();
  }

  /** The row of a payload that was refused. */
  UnsafeRow refused(String type, String message) {
    begin();
    set(layout.errorType(), type.getBytes(StandardCharsets.UTF_8));
    set(layout.errorMessage(), message.getBytes(StandardCharsets.UTF_8));
    return finish();
  }

  private void begin() {
    writer.reset();
    writer.zeroOutNullBytes();
    extra.size = 0;
    Arrays.fill(isSet, false);
  }

  private void put(Leaves leaves, int leaf) {
    Place place = leaves.place(leaf);
    place.kinds[leaves.kind(leaf).ordinal()]++;
    int start = leaves.start(leaf);
    if (place.column == Place.NONE) {
      extra.add(extra.size == 0 ? '{' : ',');
      extra.add(place.quotedPointer());
      extra.add(':');
      extra.addQuoted(leaves.bytes(leaf), start, leaves.end(leaf));
    } else {
      writer.write(place.column, leaves.bytes(leaf), start, leaves.end(leaf) - start);
      isSet[place.column] = true;
    }
  }

  /** Metadata leaves come last; of each envelope column's sources the first that equals its value is left out. */
  private void putNotTaken(Leaves leaves, UTF8String[] envelope) {
    Arrays.fill(takenLeaves, Place.NONE);
    for (int leaf = 0; leaf < leaves.count(); leaf++) {
      if (leaves.place(leaf).taken != Place.NONE) {
        takenLeaves[leaves.place(leaf).taken] = leaf;
      }
    }
    leaveOutTaken(leaves, envelope);
    for (int leaf = 0; leaf < leaves.count(); leaf++) {
      int taken = leaves.place(leaf).taken;
      if (taken != Place.NONE && takenLeaves[taken] == leaf) {
        put(leaves, leaf);
      }
    }
  }

  private void leaveOutTaken(Leaves leaves, UTF8String[] envelope) {
    int[][] sources = layout.takenByColumn();
    for (int column = 0; column < sources.length; column++) {
      for (int taken : sources[column]) {
        int leaf = takenLeaves[taken];
        if (leaf != Place.NONE && isText(leaves, leaf, envelope[column])) {
          takenLeaves[taken] = Place.NONE;
          break;
        }
      }
    }
  }

  private static boolean isText(Leaves leaves, int leaf, UTF8String value) {
    if (value == null || value.numBytes() != leaves.end(leaf) - leaves.start(leaf)) {
      return false;
    }
    byte[] text = value.getBytes();
    return Arrays.equals(text, 0, text.length, leaves.bytes(leaf), leaves.start(leaf), leaves.end(leaf));
  }

  private void set(int column, byte[] text) {
    writer.write(column, text);
    isSet[column] = true;
  }

  /** A copy, because Spark may hold on to a row while the next one is made. */
  private UnsafeRow finish() {
    if (extra.size > 0) {
      extra.add('}');
      writer.write(layout.extra(), extra.data, 0, extra.size);
      isSet[layout.extra()] = true;
    }
    for (int column = 0; column < isSet.length; column++) {
      if (!isSet[column]) {
        writer.setNullAt(column);
      }
    }
    return writer.getRow().copy();
  }
}
