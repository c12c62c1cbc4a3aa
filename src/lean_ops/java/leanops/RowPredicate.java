package leanops;

import static java.util.stream.Collectors.joining;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A question about some columns of a row; Spark calls the subclass's {@code invoke} with the bare values, or
 * {@code produceResult} where it has none.
 */
public abstract class RowPredicate implements UnboundFunction, ScalarFunction<Boolean>, Serializable {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final DataType[] inputs;

  /** A question by this name about columns of these types. */
  protected RowPredicate(String name, DataType... inputs) {
    this.name = name;
    this.inputs = inputs;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String description() {
    return Arrays.stream(inputs).map(DataType::simpleString).collect(joining(", ", name + "(", ") - boolean"));
  }

  @Override
  public final BoundFunction bind(StructType columns) {
    if (columns.length() != inputs.length) {
      throw new UnsupportedOperationException(description() + ": there are " + columns.length() + " columns");
    }
    return this;
  }

  @Override
  public final DataType[] inputTypes() {
    return inputs.clone();
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
