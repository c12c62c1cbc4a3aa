package leanops;

import java.io.Serializable;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A question about one column of a row; Spark calls the subclass's {@code invoke} with the bare value, or
 * {@code produceResult} where it has none.
 */
public abstract class RowPredicate implements UnboundFunction, ScalarFunction<Boolean>, Serializable {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final DataType input;

  /** A question by this name about a column of this type. */
  protected RowPredicate(String name, DataType input) {
    this.name = name;
    this.input = input;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String description() {
    return name + "(" + input.simpleString() + ") - boolean";
  }

  @Override
  public final BoundFunction bind(StructType columns) {
    if (columns.length() != 1) {
      throw new UnsupportedOperationException(name + " takes one column, and there are " + columns.length());
    }
    return this;
  }

  @Override
  public final DataType[] inputTypes() {
    return new DataType[] {input};
  }

  @Override
  public final DataType resultType() {
    return DataTypes.BooleanType;
  }

  /** False, so that Spark asks once for each row, and where the plan says so. */
  @Override
  public boolean isDeterministic() {
    return false;
  }
}
