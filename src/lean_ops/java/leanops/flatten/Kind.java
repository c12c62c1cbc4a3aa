package leanops.flatten;

/** What a leaf can be; null makes no leaf. */
enum Kind {
  STRING("string"),
  NUMBER("number"),
  BOOLEAN("boolean"),
  OBJECT("object"),
  ARRAY("array");

  /** Its name in reports. */
  final String text;

  Kind(String text) {
    this.text = text;
  }
}
