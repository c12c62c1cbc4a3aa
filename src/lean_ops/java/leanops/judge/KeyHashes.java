package leanops.judge;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.AccumulatorV2;

/** The hashes of the keys that the tasks of a job have seen, eight bytes each. */
public final class KeyHashes extends AccumulatorV2<long[], Long> {
  private static final long serialVersionUID = 1L;
  private static final long SEED = 42L;

  private List<long[]> parts = new ArrayList<>();

  /** A key's hash, 0 for null; keys that are not equal have the same one about never, and no harm is done then. */
  static long hash(UTF8String key) {
    return key == null ? 0 : XXH64.hashUnsafeBytes(key.getBaseObject(), key.getBaseOffset(), key.numBytes(), SEED);
  }

  @Override
  public boolean isZero() {
    return parts.isEmpty();
  }

  @Override
  public KeyHashes copy() {
    KeyHashes copy = new KeyHashes();
    copy.parts.addAll(parts);
    return copy;
  }

  @Override
  public void reset() {
    parts = new ArrayList<>();
  }

  @Override
  public void add(long[] hashes) {
    parts.add(hashes);
  }

  @Override
  public void merge(AccumulatorV2<long[], Long> other) {
    parts.addAll(((KeyHashes) other).parts);
  }

  /** How many keys were seen. */
  @Override
  public Long value() {
    return parts.stream().mapToLong(part -> part.length).sum();
  }

  /** The keys that were seen, and a few in a thousand others. */
  public MaybeAmong about() {
    MaybeAmong all = new MaybeAmong(Math.toIntExact(value()));
    parts.stream().flatMapToLong(Arrays::stream).forEach(all::add);
    return all;
  }

  /** The keys that were seen more than once. */
  public Among repeated() {
    long[] sorted = parts.stream().flatMapToLong(Arrays::stream).sorted().toArray();
    long[] found = new long[sorted.length / 2];
    int count = 0;
    for (int at = 1; at < sorted.length; at++) {
      boolean isNew = count == 0 || found[count - 1] != sorted[at];
      if (sorted[at] == sorted[at - 1] && isNew) {
        found[count++] = sorted[at];
      }
    }
    return new Among(Arrays.copyOf(found, count));
  }
}
