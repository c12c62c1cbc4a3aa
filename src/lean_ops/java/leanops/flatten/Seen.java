package leanops.flatten;

import leanops.RowPredicate;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.TaskCompletionListener;

/** Counts the rows that pass and keeps the last of their ingestion times; answers true, because all may go on. */
public final class Seen extends RowPredicate {
  private static final long serialVersionUID = 1L;

  private final Report report;

  private transient Tally tally;

  /** Hands the counts over when a task has ended. */
  public Seen(Report report) {
    super("seen", DataTypes.LongType);
    this.report = report;
  }

  @Override
  public Boolean produceResult(InternalRow row) {
    if (tally == null) {
      tally = new Tally();
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) ended -> report.add(tally));
    }
    tally.see(row.isNullAt(0) ? null : row.getLong(0));
    return true;
  }
}
