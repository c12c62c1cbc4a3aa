package leanops.plan;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes out exchanges that would move the rows of one task to one task.
 *
 * <p>A scan does not tell Spark that it has a single partition, so a merge of a small batch into a small table first
 * moves the table: a stage of its own, with a shuffle file, for rows that are all together already.
 *
 * <p>The root of a plan stays: adaptive planning hands out an exchange with what is below it as a plan of its own.
 */
final class StayInOneTask extends Rule<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    return (SparkPlan) plan.mapChildren(child -> withoutMove(apply((SparkPlan) child)));
  }

  private static SparkPlan withoutMove(SparkPlan plan) {
    boolean isNeedless = plan instanceof ShuffleExchangeExec exchange
        && exchange.outputPartitioning().numPartitions() == 1
        && isOneTask(exchange.child());
    return isNeedless ? ((ShuffleExchangeExec) plan).child() : plan;
  }

  private static boolean isOneTask(SparkPlan plan) {
    if (plan instanceof ProjectExec project) {
      return isOneTask(project.child());
    }
    if (plan instanceof FilterExec filter) {
      return isOneTask(filter.child());
    }
    // A filter that is known only at run time may leave the scan without any task.
    return plan instanceof BatchScanExec scan
        && CollectionConverters.asJava(scan.runtimeFilters()).isEmpty()
        && scan.inputRDD().getNumPartitions() == 1;
  }
}
