package leanops.judge;

/**
 * A number by its digits: {@code -1.50e3} is negative, has the digits 15 and the exponent 2; zero has no digits.
 *
 * <p>Digits are counted before anything is converted, so nothing is ever rounded to fit.
 */
final class NumberText {
  /** Powers of ten that a long holds. */
  static final long[] POWERS = new long[19];

  private static final int UNSIGNED_LONG_DIGITS = 19;
  private static final int KEPT_DIGITS = 40;
  private static final int MAX_EXPONENT_DIGITS = 4;

  static {
    POWERS[0] = 1;
    for (int power = 1; power < POWERS.length; power++) {
      POWERS[power] = 10 * POWERS[power - 1];
    }
  }

  /** Whether a minus stands before it. */
  boolean negative;

  /** How many digits there are without the zeros at either end. */
  int count;

  /** The power of ten that the last digit stands for. */
  int exponent;

  /** Whether an exponent was written. */
  boolean hasExponent;

  /** The digits as an unsigned number, while they are at most nineteen. */
  long small;

  private final byte[] digits = new byte[KEPT_DIGITS];
  private int zeros;

  /** Takes a number in; false if the text is none. */
  boolean read(TextBytes text) {
    count = 0;
    zeros = 0;
    small = 0;
    int at = text.start;
    negative = text.isAt(at, '-', '-');
    at += text.isAt(at, '-', '+') ? 1 : 0;
    int afterWhole = takeDigits(text, at);
    boolean hasPoint = text.isAt(afterWhole, '.', '.');
    int point = afterWhole + (hasPoint ? 1 : 0);
    int afterFraction = hasPoint ? takeDigits(text, point) : point;
    int fraction = afterFraction - point;
    return afterWhole - at + fraction > 0 && takeExponent(text, afterFraction, fraction);
  }

  private int takeDigits(TextBytes text, int from) {
    int at = from;
    for (int digit = text.digit(at); digit >= 0; digit = text.digit(++at)) {
      take(digit);
    }
    return at;
  }

  private void take(int digit) {
    if (digit == 0) {
      zeros += count > 0 ? 1 : 0;
      return;
    }
    for (; zeros > 0; zeros--) {
      push(0);
    }
    push(digit);
  }

  private void push(int digit) {
    if (count < UNSIGNED_LONG_DIGITS) {
      small = 10 * small + digit;
    }
    if (count < KEPT_DIGITS) {
      digits[count] = (byte) ('0' + digit);
    }
    count++;
  }

  private boolean takeExponent(TextBytes text, int from, int fraction) {
    hasExponent = text.isAt(from, 'e', 'E');
    exponent = count == 0 ? 0 : zeros - fraction;
    if (!hasExponent) {
      return from == text.end;
    }
    boolean isNegative = text.isAt(from + 1, '-', '-');
    int at = from + (text.isAt(from + 1, '-', '+') ? 2 : 1);
    int length = text.end - at;
    int written = 0;
    for (; at < text.end; at++) {
      int digit = text.digit(at);
      if (digit < 0 || length > MAX_EXPONENT_DIGITS) {
        return false;
      }
      written = 10 * written + digit;
    }
    exponent += count == 0 ? 0 : isNegative ? -written : written;
    return length > 0;
  }

  /** How many digits stand before the point when it is written out; less than one if there are none. */
  int wholeDigits() {
    return count + exponent;
  }

  /** The digits, which must be at most forty, as text with a sign. */
  StringBuilder signedDigits() {
    StringBuilder text = new StringBuilder(KEPT_DIGITS + 8);
    text.append(negative ? "-" : "");
    for (int at = 0; at < count; at++) {
      text.append((char) digits[at]);
    }
    return text.append(count == 0 ? "0" : "");
  }
}
