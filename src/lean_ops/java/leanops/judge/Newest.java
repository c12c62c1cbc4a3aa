package leanops.judge;

import leanops.RowPredicate;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.LongAccumulator;

/** Whether a row has the first place among the versions of its key; those that have are counted. */
public final class Newest extends RowPredicate {
  private static final long serialVersionUID = 1L;

  private final LongAccumulator keys;

  /** Counts into an accumulator. */
  public Newest(LongAccumulator keys) {
    super("newest", DataTypes.IntegerType);
    this.keys = keys;
  }

  /** Whether this place is the first. */
  public boolean invoke(int place) {
    if (place == 1) {
      keys.add(1L);
    }
    return place == 1;
  }
}
