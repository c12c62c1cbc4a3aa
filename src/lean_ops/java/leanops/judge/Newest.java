package leanops.judge;

import java.io.Serializable;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;

/** Whether a row has the first place among the versions of its key; those that have are counted. */
public final class Newest implements UnboundFunction, ScalarFunction<Boolean>, Serializable {
  private static final long serialVersionUID = 1L;

  private final LongAccumulator keys;

  /** Counts into an accumulator. */
  public Newest(LongAccumulator keys) {
    this.keys = keys;
  }

  @Override
  public String name() {
    return "newest";
  }

  @Override
  public String description() {
    return "newest(place) - boolean";
  }

  @Override
  public BoundFunction bind(StructType input) {
    if (input.length() != 1) {
      throw new UnsupportedOperationException("newest takes one column, and there are " + input.length());
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {DataTypes.IntegerType};
  }

  @Override
  public DataType resultType() {
    return DataTypes.BooleanType;
  }

  /** False, so that Spark asks once for each row. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  /** Spark calls this with the place itself; it makes no row for it. */
  public boolean invoke(int place) {
    if (place == 1) {
      keys.add(1L);
    }
    return place == 1;
  }
}
