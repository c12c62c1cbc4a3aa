package leanops.flatten;

import org.apache.spark.util.AccumulatorV2;

/**
 * What all tasks of a job saw together; true once the job has ended.
 *
 * <p>A task adds its tally once, when it completes: the heartbeat reads this at any moment from another thread.
 */
public final class Report extends AccumulatorV2<Tally, String> {
  private static final long serialVersionUID = 1;

  private Tally total = new Tally();

  @Override
  public boolean isZero() {
    return total.isEmpty();
  }

  @Override
  public Report copy() {
    Report copy = new Report();
    copy.total.add(total);
    return copy;
  }

  @Override
  public void reset() {
    total = new Tally();
  }

  @Override
  public void add(Tally tally) {
    Tally sum = new Tally();
    sum.add(total);
    sum.add(tally);
    total = sum;
  }

  @Override
  public void merge(AccumulatorV2<Tally, String> other) {
    total.add(((Report) other).total);
  }

  /** The tally as a JSON object. */
  @Override
  public String value() {
    return total.toJson();
  }
}
