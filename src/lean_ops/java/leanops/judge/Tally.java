package leanops.judge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.util.AccumulatorV2;

/** What the tasks of a job have judged; a task is counted when it has ended, and only if it has ended well. */
public final class Tally extends AccumulatorV2<TaskTally, String> {
  private static final long serialVersionUID = 1L;
  private static final long ROOM = 32L * 1024 * 1024;

  private long rows;
  private long errors;
  private long errorBytes;
  private Long lastIngestion;
  private long carried;
  private long carriedBytes;
  private List<byte[]> parts = new ArrayList<>();

  @Override
  public boolean isZero() {
    return rows == 0;
  }

  @Override
  public Tally copy() {
    Tally copy = new Tally();
    copy.merge(this);
    return copy;
  }

  @Override
  public void reset() {
    rows = 0;
    errors = 0;
    errorBytes = 0;
    lastIngestion = null;
    carried = 0;
    carriedBytes = 0;
    parts = new ArrayList<>();
  }

  @Override
  public void add(TaskTally task) {
    count(task.rows, task.errors, task.errorBytes, task.lastIngestion);
    if (task.carried > 0) {
      carry(task.carried, task.carriedRows.size(), List.of(task.carriedRows.bytes()));
    }
  }

  @Override
  public void merge(AccumulatorV2<TaskTally, String> other) {
    Tally task = (Tally) other;
    count(task.rows, task.errors, task.errorBytes, task.lastIngestion);
    carry(task.carried, task.carriedBytes, task.parts);
  }

  private void count(long moreRows, long moreErrors, long moreErrorBytes, Long ingestion) {
    rows += moreRows;
    errors += moreErrors;
    errorBytes += moreErrorBytes;
    if (ingestion != null && (lastIngestion == null || ingestion > lastIngestion)) {
      lastIngestion = ingestion;
    }
  }

  /** Takes refused rows along while there is room; who finds some missing must judge again. */
  private void carry(long count, long bytes, List<byte[]> rowsAsJson) {
    if (carriedBytes + bytes <= ROOM) {
      carried += count;
      carriedBytes += bytes;
      parts.addAll(rowsAsJson);
    }
  }

  /** The counts as JSON. */
  @Override
  public String value() {
    return "{\"rows\":" + rows
        + ",\"errors\":" + errors
        + ",\"error_bytes\":" + errorBytes
        + ",\"last_ingestion_ts\":" + lastIngestion
        + ",\"carried\":" + carried
        + ",\"parts\":" + parts.size()
        + "}";
  }

  /** Refused rows as a JSON array. */
  public byte[] part(int number) {
    return new JsonText().sign('[').raw(parts.get(number)).sign(']').bytes();
  }
}
