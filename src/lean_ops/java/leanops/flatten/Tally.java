package leanops.flatten;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What was seen in some rows: how many, and of those that were flattened, which values stood where, what was refused. */
final class Tally implements Serializable {
  private static final long serialVersionUID = 1;

  long records;
  long refused;
  long refusedBytes;

  /** Refused rows as JSON objects, as many as may travel with the counts. */
  final List<String> carried = new ArrayList<>();

  private long seen;
  private Long lastIngestion;
  private final Map<String, long[]> places = new LinkedHashMap<>();

  /** Takes in a row as it came, with its ingestion time if it has one. */
  void see(Long ingestion) {
    seen++;
    keepLast(ingestion);
  }

  private void keepLast(Long ingestion) {
    if (ingestion != null && (lastIngestion == null || lastIngestion < ingestion)) {
      lastIngestion = ingestion;
    }
  }

  /** Takes in what a place held. */
  void addPlace(String pointer, long[] kinds) {
    long[] total = places.computeIfAbsent(pointer, p -> new long[kinds.length]);
    for (int kind = 0; kind < kinds.length; kind++) {
      total[kind] += kinds[kind];
    }
  }

  /** Takes in what was seen in other records. */
  void add(Tally other) {
    seen += other.seen;
    keepLast(other.lastIngestion);
    records += other.records;
    refused += other.refused;
    refusedBytes += other.refusedBytes;
    carried.addAll(other.carried);
    other.places.forEach(this::addPlace);
  }

  boolean isEmpty() {
    return seen == 0 && records == 0;
  }

  /** The tally as a JSON object. */
  String toJson() {
    Bytes json = new Bytes();
    json.add("{\"seen\":" + seen + ",\"last_ingestion_ts\":" + lastIngestion);
    json.add(",\"records\":" + records + ",\"refused\":" + refused + ",\"refused_bytes\":" + refusedBytes);
    json.add(",\"carried\":[");
    json.add(String.join(",", carried));
    json.add("],\"places\":");
    addPlaces(json);
    json.add('}');
    return json.toString();
  }

  private void addPlaces(Bytes json) {
    char before = '{';
    for (Map.Entry<String, long[]> place : places.entrySet()) {
      json.add(before);
      json.addQuoted(place.getKey());
      json.add(':');
      addKinds(place.getValue(), json);
      before = ',';
    }
    json.add(places.isEmpty() ? "{}" : "}");
  }

  private static void addKinds(long[] kinds, Bytes json) {
    char before = '{';
    for (Kind kind : Kind.values()) {
      if (kinds[kind.ordinal()] > 0) {
        json.add(before + "\"" + kind.text + "\":" + kinds[kind.ordinal()]);
        before = ',';
      }
    }
    json.add('}');
  }
}
