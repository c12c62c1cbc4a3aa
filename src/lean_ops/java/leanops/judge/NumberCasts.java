package leanops.judge;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.Decimal;

/** Texts as numbers of each type: exact, or null. */
final class NumberCasts {
  private static final int LONG_DIGITS = 18;
  private static final int BIGINT_DIGITS = 19;
  private static final double BIGINT_END = 0x1p63;
  // Seventeen digits tell any two doubles apart. Fifteen survive the way into a double and back; past them a whole
  // number that is written out is somebody's identifier as likely as a measure, and must not become its neighbour.
  private static final int MAX_DOUBLE_DIGITS = 17;
  private static final int SAFE_DOUBLE_DIGITS = 15;
  // Up to 1e22 a double holds powers of ten exactly; one division or product of exact numbers is rounded once.
  private static final int EXACT_POWERS = 22;
  private static final double[] POWERS = new double[EXACT_POWERS + 1];

  static {
    POWERS[0] = 1;
    for (int power = 1; power < POWERS.length; power++) {
      POWERS[power] = 10 * POWERS[power - 1];
    }
  }

  private final NumberText number = new NumberText();

  /** A whole number of 32 bits. */
  Object wholeInt(TextBytes text) {
    Long value = wholeLong(text);
    return value == null || value != value.intValue() ? null : (Object) value.intValue();
  }

  /** A whole number of 64 bits. */
  Long wholeLong(TextBytes text) {
    if (!number.read(text) || number.exponent < 0 || number.wholeDigits() > BIGINT_DIGITS) {
      return null;
    }
    long magnitude = magnitude();
    if (number.negative) {
      return Long.compareUnsigned(magnitude, Long.MIN_VALUE) <= 0 ? Long.valueOf(-magnitude) : null;
    }
    return magnitude >= 0 ? Long.valueOf(magnitude) : null;
  }

  /** The whole number without its sign: nineteen digits are an unsigned long. */
  private long magnitude() {
    return number.count == 0 ? 0 : number.small * NumberText.POWERS[number.exponent];
  }

  /** A decimal that holds every digit. */
  Decimal decimal(TextBytes text, int precision, int scale) {
    if (!number.read(text) || number.wholeDigits() > precision - scale || number.exponent < -scale) {
      return null;
    }
    int shift = number.exponent + scale;
    if (number.count == 0 || number.count + shift <= LONG_DIGITS) {
      long unscaled = number.count == 0 ? 0 : number.small * NumberText.POWERS[shift];
      return Decimal.createUnsafe(number.negative ? -unscaled : unscaled, precision, scale);
    }
    BigInteger unscaled = new BigInteger(number.signedDigits().toString()).multiply(BigInteger.TEN.pow(shift));
    return Decimal.apply(new BigDecimal(unscaled, scale), precision, scale);
  }

  /** The nearest double, where that loses no digits. */
  Double nearestDouble(TextBytes text) {
    if (!number.read(text) || number.count > MAX_DOUBLE_DIGITS) {
      return null;
    }
    double value = nearest();
    boolean isWithinReach = Double.isFinite(value) && (value != 0 || number.count == 0);
    return isWithinReach && (number.hasExponent || isExactWhereAsked(Math.abs(value))) ? Double.valueOf(value) : null;
  }

  private double nearest() {
    if (number.count > SAFE_DOUBLE_DIGITS || Math.abs(number.exponent) > EXACT_POWERS) {
      return Double.parseDouble(number.signedDigits().append('e').append(number.exponent).toString());
    }
    double power = POWERS[Math.abs(number.exponent)];
    double value = number.exponent < 0 ? number.small / power : number.small * power;
    return number.negative ? -value : value;
  }

  /** Whole numbers past the digits that are always safe, as far as a BIGINT goes, are held exactly. */
  private boolean isExactWhereAsked(double value) {
    if (number.exponent < 0 || number.count <= SAFE_DOUBLE_DIGITS || number.wholeDigits() > BIGINT_DIGITS) {
      return true;
    }
    long whole = magnitude();
    return whole < 0 || (value < BIGINT_END && (long) value == whole);
  }
}
