package leanops.judge;

import java.util.Arrays;
import leanops.RowPredicate;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Whether a key is one of a few, by its hash. */
public final class Among extends RowPredicate {
  private static final long serialVersionUID = 1L;

  private final long[] sortedHashes;

  Among(long[] sortedHashes) {
    super("among", DataTypes.StringType);
    this.sortedHashes = sortedHashes;
  }

  /** How many they are. */
  public int size() {
    return sortedHashes.length;
  }

  /** Whether this key is one of them. */
  public boolean invoke(UTF8String key) {
    return Arrays.binarySearch(sortedHashes, KeyHashes.hash(key)) >= 0;
  }
}
