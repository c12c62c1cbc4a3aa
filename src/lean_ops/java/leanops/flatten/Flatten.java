package leanops.flatten;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Payload text to a flat row: each leaf's text in its column, or why the payload was refused. */
public final class Flatten implements UnboundFunction, ScalarFunction<InternalRow>, Serializable {
  private static final long serialVersionUID = 1;

  private final Layout layout;
  private final Report report;
  private final int carriedBytes;
  private transient FlattenTask task;

  /**
   * A function for the columns that a layout describes (see Layout).
   *
   * @param report takes what the tasks saw; null where nobody asks
   * @param carriedBytes how much of refused rows the tasks of a job may report together
   */
  public Flatten(String layout, Report report, int carriedBytes) {
    this.layout = new Layout(layout);
    this.report = report;
    this.carriedBytes = carriedBytes;
  }

  @Override
  public BoundFunction bind(StructType given) {
    if (given.size() != inputTypes().length) {
      throw new UnsupportedOperationException(
          name() + ": found " + given.size() + " columns, expected " + inputTypes().length);
    }
    return this;
  }

  @Override
  public InternalRow produceResult(InternalRow input) {
    if (task == null) { // Spark makes a function of its own for each task
      task = new FlattenTask(layout, report, carriedBytes);
    }
    return task.flatten(input);
  }

  /** The payload, the envelope's columns that may come from it, and what else identifies a refused message. */
  @Override
  public DataType[] inputTypes() {
    DataType text = DataTypes.StringType;
    return new DataType[] {text, text, text, text, text, text, DataTypes.TimestampType, DataTypes.LongType};
  }

  @Override
  public StructType resultType() {
    return layout.rowType();
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  /** Said to be false, so that Spark neither calls it twice for a row nor moves a filter below it. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public String name() {
    return "flatten";
  }

  @Override
  public String description() {
    return "flatten(json_payload, idempotency_key, period_reference, correlation_id, message_id, topic_name,"
        + " publish_time, ingestion_ts): the payload's leaves as columns";
  }
}
