package leanops.flatten;

import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.TaskCompletionListener;

/** One task's flattening: buffers and places that are used from record to record, and its tally. */
final class FlattenTask {
  private static final int PAYLOAD = 0;
  private static final int TAKEN = 1;
  private static final int MESSAGE_ID = 4;
  private static final int TOPIC_NAME = 5;
  private static final int PUBLISH_TIME = 6;
  private static final int INGESTION_TS = 7;

  private final Places places;
  private final FastReader fast;
  private final TreeWalk walk;
  private final FlatRow row;
  private final Leaves leaves = new Leaves();
  private final Tally tally = new Tally();
  private final UTF8String[] envelope;
  private byte[] bytes = new byte[4096];
  private int size;
  private long roomForCarried;

  /** A task; if it is one of Spark's, the report gets its tally when it completes. */
  FlattenTask(Layout layout, Report report, int carriedBytes) {
    places = new Places(layout);
    fast = new FastReader(places.root);
    walk = new TreeWalk(places);
    row = new FlatRow(layout);
    envelope = new UTF8String[layout.takenByColumn().length];
    TaskContext context = TaskContext.get();
    if (report != null && context != null) {
      roomForCarried = carriedBytes / Math.max(1, context.numPartitions());
      context.addTaskCompletionListener((TaskCompletionListener) completed -> report.add(finished()));
    }
  }

  /** The flat row of an input row. */
  InternalRow flatten(InternalRow input) {
    tally.records++;
    try {
      load(input.isNullAt(PAYLOAD) ? null : input.getUTF8String(PAYLOAD));
      read();
    } catch (Refused refused) {
      note(refused, input);
      return row.refused(refused.type, refused.getMessage());
    }
    for (int column = 0; column < envelope.length; column++) {
      envelope[column] = input.isNullAt(TAKEN + column) ? null : input.getUTF8String(TAKEN + column);
    }
    return row.of(leaves, envelope);
  }

  private void load(UTF8String payload) {
    size = 0;
    if (payload == null) {
      throw new Refused(Refused.EMPTY, "the payload is NULL");
    }
    size = payload.numBytes();
    if (bytes.length - TextScan.PADDING < size) {
      bytes = new byte[Math.addExact(size, Math.max(size / 2, TextScan.PADDING))];
    }
    payload.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET);
    Arrays.fill(bytes, size, size + TextScan.PADDING, (byte) 0);
  }

  /** The fast reader reads what is as it was before; whatever else there is takes the way through a tree. */
  private void read() {
    leaves.begin(bytes);
    if (!fast.read(bytes, size, leaves)) {
      Members members = Payload.read(bytes, size);
      leaves.begin(bytes);
      walk.walk(members, places.root, leaves);
    }
  }

  private void note(Refused refused, InternalRow input) {
    tally.refused++;
    tally.refusedBytes += size;
    roomForCarried -= size + refused.getMessage().length();
    if (roomForCarried >= 0 && Utf8.firstError(bytes, size) < 0) {
      tally.carried.add(refusedRow(refused, input));
    }
  }

  /** A row of the table of refused payloads, as JSON. */
  private String refusedRow(Refused refused, InternalRow input) {
    Bytes json = new Bytes();
    json.add("{\"message_id\":");
    addText(input, MESSAGE_ID, json);
    json.add(",\"idempotency_key\":");
    addText(input, TAKEN, json);
    json.add(",\"topic_name\":");
    addText(input, TOPIC_NAME, json);
    json.add(",\"publish_time\":");
    addNumber(input, PUBLISH_TIME, json);
    json.add(",\"ingestion_ts\":");
    addNumber(input, INGESTION_TS, json);
    json.add(",\"raw_payload\":");
    addText(input, PAYLOAD, json);
    json.add(",\"error_type\":");
    json.addQuoted(refused.type);
    json.add(",\"error_message\":");
    json.addQuoted(refused.getMessage());
    json.add('}');
    return json.toString();
  }

  private static void addText(InternalRow input, int column, Bytes json) {
    if (input.isNullAt(column)) {
      json.add("null");
    } else {
      json.addQuoted(input.getUTF8String(column).toString());
    }
  }

  private static void addNumber(InternalRow input, int column, Bytes json) {
    json.add(input.isNullAt(column) ? "null" : Long.toString(input.getLong(column)));
  }

  private Tally finished() {
    for (Place place : places.all()) {
      if (place.wasSeen()) {
        tally.addPlace(place.pointer, place.kinds);
      }
    }
    return tally;
  }
}
