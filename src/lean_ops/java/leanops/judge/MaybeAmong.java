package leanops.judge;

import leanops.RowPredicate;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Whether a key may be one of many: true for each of them, and for a few in a thousand others.
 *
 * <p>Each of them has set two bits in a table of at least 32 bits for each, which stays in the processor's cache.
 */
public final class MaybeAmong extends RowPredicate {
  private static final long serialVersionUID = 1L;
  private static final int KEYS_PER_WORD = 2;

  private final long[] words;

  /** Makes room for so many keys. */
  MaybeAmong(int keys) {
    super("maybe_among", DataTypes.StringType);
    words = new long[2 * Integer.highestOneBit(Math.max(1, keys / KEYS_PER_WORD))];
  }

  /** True, so that Spark asks as soon as it has read the key, before it moves a row. */
  @Override
  public boolean isDeterministic() {
    return true;
  }

  /** One more of them, by its hash. */
  void add(long hash) {
    words[word(hash)] |= 1L << hash;
    words[word(hash >>> 32)] |= 1L << (hash >>> 32);
  }

  /** Whether this key may be one of them. */
  public boolean invoke(UTF8String key) {
    long hash = KeyHashes.hash(key);
    return (words[word(hash)] >>> hash & words[word(hash >>> 32)] >>> (hash >>> 32) & 1L) != 0;
  }

  /** Where a hash's bit is; the six bits of the hash below those say which bit it is. */
  private int word(long hash) {
    return (int) (hash >>> 6) & words.length - 1;
  }
}
