package leanops.plan;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What our sessions add to Spark's planning; {@code spark.sql.extensions} names it. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(session -> new LastLook());
    return BoxedUnit.UNIT;
  }

  /** The one place where Spark lets others see a whole plan after it has put the exchanges in. */
  private static final class LastLook extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new StayInOneTask();
    }
  }
}
