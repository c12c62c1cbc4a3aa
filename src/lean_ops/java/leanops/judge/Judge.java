package leanops.judge;

import java.io.Serializable;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;

/** Makes of a Standardized row the payload of a Curated one, or the error row of one that breaks a rule. */
public final class Judge implements UnboundFunction, ScalarFunction<InternalRow>, Serializable {
  private static final long serialVersionUID = 1L;
  private static final int ENVELOPE = Envelope.values().length;

  private final String planText;
  private final byte[] innerKey;
  private final byte[] outerKey;
  private final Tally tally;

  private transient DataType[] inputTypes;
  private transient StructType resultType;
  private transient Plan plan;
  private transient Refusals refusals;
  private transient TaskTally task;

  /** A judge by a plan in JSON; the keys are null if no column is hashed, the tally if nobody asks for it. */
  public Judge(String planText, byte[] innerKey, byte[] outerKey, Tally tally) {
    this.planText = planText;
    this.innerKey = innerKey;
    this.outerKey = outerKey;
    this.tally = tally;
  }

  @Override
  public String name() {
    return "judge";
  }

  @Override
  public String description() {
    return "judge(envelope columns, payload texts) - " + resultType().simpleString();
  }

  @Override
  public BoundFunction bind(StructType input) {
    int expected = inputTypes().length;
    if (input.length() != expected) {
      throw new UnsupportedOperationException(
          "judge takes " + expected + " columns, and there are " + input.length());
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    inputTypes = inputTypes == null ? Plan.inputTypes(planText) : inputTypes;
    return inputTypes;
  }

  @Override
  public StructType resultType() {
    resultType = resultType == null ? Plan.resultType(planText) : resultType;
    return resultType;
  }

  /** False, so that Spark judges each row once, and moves no filter below. */
  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public InternalRow produceResult(InternalRow input) {
    if (plan == null) {
      begin();
    }
    int size = plan.columns.length;
    UTF8String[] texts = new UTF8String[size];
    Object[] values = new Object[size + 1];
    if (isKept(input, texts, values)) {
      protect(values);
    } else {
      InternalRow refused = refusals.of(input, texts, values);
      values = new Object[size + 1];
      values[size] = refused;
    }
    if (task != null) {
      task.count(input, (InternalRow) values[size]);
    }
    return new GenericInternalRow(values);
  }

  /** Finds texts and values; whether they keep every rule. */
  private boolean isKept(InternalRow input, UTF8String[] texts, Object[] values) {
    boolean isKept = keepsEnvelopeRules(input);
    for (int at = 0; at < texts.length; at++) {
      Column column = plan.columns[at];
      int place = ENVELOPE + at;
      texts[at] = column.text(input.isNullAt(place) ? null : input.getUTF8String(place));
      values[at] = column.value(texts[at]);
      isKept = isKept && column.isKept(texts[at], values[at]);
    }
    return isKept;
  }

  private boolean keepsEnvelopeRules(InternalRow input) {
    for (Plan.EnvelopeRule rule : plan.envelopeRules) {
      if (rule.isBroken(input)) {
        return false;
      }
    }
    return true;
  }

  private void protect(Object[] values) {
    for (int at = 0; at < plan.columns.length; at++) {
      values[at] = plan.columns[at].written(values[at]);
    }
  }

  /** The first row of a task: patterns are compiled, and the task's end will be counted. */
  private void begin() {
    plan = Plan.of(planText, innerKey, outerKey);
    refusals = new Refusals(plan);
    TaskContext context = TaskContext.get();
    if (tally != null && context != null) {
      task = new TaskTally();
      context.addTaskCompletionListener((TaskCompletionListener) ended -> tally.add(task));
    }
  }
}
