package leanops.flatten;

/** A JSON number as it was written. */
record NumberText(String text) {
  /** How many of its characters are digits. */
  long digits() {
    return text.chars().filter(one -> one >= '0' && one <= '9').count();
  }
}
