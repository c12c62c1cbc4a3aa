package leanops;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The functions that the driver has made ready for a plan, by name: how Spark finds an object of ours.
 *
 * <p>A name is needed only while a plan is analysed; from then on the plan holds the function itself.
 */
public final class Functions implements FunctionCatalog {
  private static final ConcurrentMap<String, UnboundFunction> BY_NAME = new ConcurrentHashMap<>();

  private String name;

  /** Makes a function known under a name that nobody else uses. */
  public static void put(String name, UnboundFunction function) {
    if (BY_NAME.putIfAbsent(name, function) != null) {
      throw new IllegalStateException("there is a function with the name " + name + " already");
    }
  }

  /** Forgets a name. */
  public static void remove(String name) {
    BY_NAME.remove(name);
  }

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return BY_NAME.keySet().stream().map(each -> Identifier.of(namespace, each)).toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    UnboundFunction function = BY_NAME.get(identifier.name());
    if (function == null) {
      throw new NoSuchFunctionException(identifier);
    }
    return function;
  }
}
