package leanops.flatten;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import leanops.RowPredicate;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Whether a row goes on, by its file and its position there; all that pass are counted, and the last of their
 * ingestion times is kept.
 */
public final class Seen extends RowPredicate {
  private static final long serialVersionUID = 1L;

  private final Report report;
  private final Map<String, Set<Long>> leftOut = new HashMap<>();

  private transient Tally tally;
  private transient UTF8String file;
  private transient Set<Long> leftOutOfFile;

  /**
   * Hands the counts over when a task has ended, if there is a report; `leftOut` is JSON with `files`, pairs of a file
   * and the positions in it, as texts, that do not go on.
   */
  public Seen(Report report, String leftOut) {
    super("seen", DataTypes.LongType, DataTypes.StringType, DataTypes.LongType);
    this.report = report;
    for (Object pair : (List<?>) StrictReader.readObject(leftOut).get("files")) {
      Set<Long> positions = new HashSet<>();
      for (Object position : (List<?>) ((List<?>) pair).get(1)) {
        positions.add(Long.valueOf((String) position));
      }
      this.leftOut.put((String) ((List<?>) pair).get(0), positions);
    }
  }

  @Override
  public Boolean produceResult(InternalRow row) {
    if (report != null) {
      count(row.isNullAt(0) ? null : row.getLong(0));
    }
    return leftOut.isEmpty() || !leftOutOf(row.getUTF8String(1)).contains(row.getLong(2));
  }

  private void count(Long ingestionTime) {
    if (tally == null) {
      tally = new Tally();
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) ended -> report.add(tally));
    }
    tally.see(ingestionTime);
  }

  /** The positions of a file; rows come file by file, so that its name is looked up once. */
  private Set<Long> leftOutOf(UTF8String file) {
    if (!file.equals(this.file)) {
      this.file = file.clone();
      leftOutOfFile = leftOut.getOrDefault(file.toString(), Set.of());
    }
    return leftOutOfFile;
  }
}
