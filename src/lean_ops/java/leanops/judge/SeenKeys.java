package leanops.judge;

import java.util.Arrays;
import leanops.RowPredicate;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;

/** Takes the hash of each key down; answers false, because nobody needs the rows. */
public final class SeenKeys extends RowPredicate {
  private static final long serialVersionUID = 1L;

  private final KeyHashes hashes;

  private transient long[] seen;
  private transient int count;

  /** Hands the hashes over when a task has ended. */
  public SeenKeys(KeyHashes hashes) {
    super("seen_keys", DataTypes.StringType);
    this.hashes = hashes;
  }

  /** Sees a key. */
  public boolean invoke(UTF8String key) {
    if (seen == null) {
      seen = new long[1024];
      TaskContext.get().addTaskCompletionListener(
          (TaskCompletionListener) ended -> hashes.add(Arrays.copyOf(seen, count)));
    }
    if (key != null) {
      seen = count == seen.length ? Arrays.copyOf(seen, 2 * count) : seen;
      seen[count++] = KeyHashes.hash(key);
    }
    return false;
  }
}
