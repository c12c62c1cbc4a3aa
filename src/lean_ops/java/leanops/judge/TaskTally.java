package leanops.judge;

import org.apache.spark.sql.catalyst.InternalRow;

/** What one task has judged: counts, and its refused rows as JSON as long as there is room for them. */
final class TaskTally {
  private static final int ROOM = 16 * 1024 * 1024;

  long rows;
  long errors;
  long errorBytes;
  Long lastIngestion;
  long carried;
  final JsonText carriedRows = new JsonText();

  /** Counts a row; {@code refused} is null for a good one. */
  void count(InternalRow input, InternalRow refused) {
    rows++;
    Long ingestion = Envelope.INGESTION_TS.number(input);
    if (ingestion != null && (lastIngestion == null || ingestion > lastIngestion)) {
      lastIngestion = ingestion;
    }
    if (refused != null) {
      errors++;
      carry(refused);
    }
  }

  private void carry(InternalRow refused) {
    int size = Refusals.size(refused);
    errorBytes += size;
    if (carriedRows.size() + size < ROOM) {
      Refusals.write(refused, carried == 0 ? carriedRows : carriedRows.sign(','));
      carried++;
    }
  }
}
