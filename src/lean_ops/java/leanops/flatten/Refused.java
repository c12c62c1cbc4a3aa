package leanops.flatten;

/** Why a payload is no object that can be stored. */
final class Refused extends RuntimeException {
  private static final long serialVersionUID = 1;
  static final String EMPTY = "EMPTY_PAYLOAD";
  static final String INVALID = "INVALID_JSON";
  static final String NOT_AN_OBJECT = "NOT_AN_OBJECT";

  /** The kind of refusal. */
  final String type;

  Refused(String type, String message) {
    super(message, null, false, false); // thrown for one payload in some: a stack trace would cost more than it says
    this.type = type;
  }

  static Refused invalid(String message) {
    return new Refused(INVALID, message);
  }
}
