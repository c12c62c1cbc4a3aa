package leanops.judge;

/** Texts as days and times: UTC with microseconds, in the years 0001 to 9999; or null. */
final class TimeCasts {
  private static final long NONE = Long.MIN_VALUE;
  private static final long FIRST_MICROSECOND = -62135596800000000L; // 0001-01-01
  private static final long LAST_MICROSECOND = 253402300799999999L; // 9999-12-31
  private static final long SECOND = 1_000_000L;
  private static final int DAY_LENGTH = 10;
  private static final int MINUTE_LENGTH = 16;
  private static final int MINUTES_OF_DAY = 24 * 60;
  private static final int FARTHEST_ZONE = 18 * 60;
  private static final int MAX_FRACTION_DIGITS = 9;
  private static final int MAX_EPOCH_DIGITS = 18;
  private static final int[] MONTH_LENGTHS = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

  private TimeCasts() {}

  /** A day of the calendar as days since 1970. */
  static Integer date(TextBytes text) {
    long days = text.length() == DAY_LENGTH ? days(text) : NONE;
    return days == NONE ? null : Integer.valueOf((int) days);
  }

  /** The days since 1970 of the date that a text begins with, or NONE. */
  private static long days(TextBytes text) {
    int at = text.start;
    int century = text.twoDigits(at);
    int yearOfCentury = text.twoDigits(at + 2);
    int month = text.twoDigits(at + 5);
    int day = text.twoDigits(at + 8);
    boolean isWritten = text.isAt(at + 4, '-', '-') && text.isAt(at + 7, '-', '-');
    if (!isWritten || century < 0 || yearOfCentury < 0) {
      return NONE;
    }
    int year = 100 * century + yearOfCentury;
    boolean isDay = year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= monthLength(year, month);
    return isDay ? daysSinceEpoch(year, month, day) : NONE;
  }

  private static int monthLength(int year, int month) {
    boolean isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && !isLeapYear ? 28 : MONTH_LENGTHS[month - 1];
  }

  /** Counts in years that begin in March, so that a leap day is a year's last. */
  private static long daysSinceEpoch(int year, int month, int day) {
    int years = month > 2 ? year : year - 1;
    int monthsSinceMarch = (month + 9) % 12;
    int dayOfYear = (153 * monthsSinceMarch + 2) / 5 + day - 1;
    return 365L * years + years / 4 - years / 100 + years / 400 + dayOfYear - 719468;
  }

  /** A time with its date as microseconds since 1970, UTC if it names no zone. */
  static Long iso(TextBytes text) {
    int at = text.start;
    if (text.length() < MINUTE_LENGTH || !isSeparator(text, at + DAY_LENGTH) || !text.isAt(at + 13, ':', ':')) {
      return null;
    }
    long days = days(text);
    int hour = text.twoDigits(at + 11);
    int minute = text.twoDigits(at + 14);
    if (days == NONE || hour < 0 || hour > 23 || minute < 0 || minute > 59) {
      return null;
    }
    return withSeconds(text, at + MINUTE_LENGTH, days * MINUTES_OF_DAY + hour * 60 + minute);
  }

  private static boolean isSeparator(TextBytes text, int at) {
    return text.isAt(at, 'T', 't') || text.isAt(at, ' ', ' ');
  }

  private static Long withSeconds(TextBytes text, int from, long minutes) {
    if (!text.isAt(from, ':', ':')) {
      return inZone(text, from, minutes, 0);
    }
    int second = text.twoDigits(from + 1);
    int at = from + 3;
    if (second < 0 || second > 59) {
      return null;
    }
    if (!text.isAt(at, '.', '.')) {
      return inZone(text, at, minutes, second * SECOND);
    }
    int end = endOfDigits(text, at + 1);
    int length = end - at - 1;
    if (length < 1 || length > MAX_FRACTION_DIGITS) {
      return null;
    }
    return inZone(text, end, minutes, second * SECOND + cut(text, at + 1, end, 6));
  }

  private static int endOfDigits(TextBytes text, int from) {
    int at = from;
    while (text.digit(at) >= 0) {
      at++;
    }
    return at;
  }

  /** The first so many digits of a fraction as a number; what is past them is dropped, never rounded. */
  private static long cut(TextBytes text, int from, int end, int digits) {
    long value = 0;
    for (int at = from; at < from + digits; at++) {
      value = 10 * value + (at < end ? text.digit(at) : 0);
    }
    return value;
  }

  private static Long inZone(TextBytes text, int at, long minutes, long micros) {
    long offset = offset(text, at);
    return offset == NONE ? null : withinYears((minutes - offset) * 60 * SECOND + micros);
  }

  /** The minutes of a zone: nothing, Z, +HH, +HHMM or +HH:MM, at most 18 hours; or NONE. */
  private static long offset(TextBytes text, int at) {
    int length = text.end - at;
    if (length == 0 || (length == 1 && text.isAt(at, 'Z', 'z'))) {
      return 0;
    }
    boolean hasColon = length == 6 && text.isAt(at + 3, ':', ':');
    int hours = text.twoDigits(at + 1);
    int minutes = length == 3 ? 0 : text.twoDigits(at + (hasColon ? 4 : 3));
    boolean isWritten = text.isAt(at, '+', '-') && (length == 3 || length == 5 || hasColon);
    if (!isWritten || hours < 0 || minutes < 0 || minutes > 59 || hours * 60 + minutes > FARTHEST_ZONE) {
      return NONE;
    }
    return text.bytes[at] == '-' ? -(hours * 60 + minutes) : hours * 60 + minutes;
  }

  private static Long withinYears(long micros) {
    return micros >= FIRST_MICROSECOND && micros <= LAST_MICROSECOND ? Long.valueOf(micros) : null;
  }

  /** Units since 1970, of which so many fraction digits make microseconds, as microseconds. */
  static Long sinceEpoch(TextBytes text, int fractionDigits) {
    int at = text.start + (text.isAt(text.start, '+', '-') ? 1 : 0);
    int end = endOfDigits(text, at);
    int fraction = end < text.end ? fractionLength(text, end) : 0;
    if (end == at || end - at > MAX_EPOCH_DIGITS || fraction < 0) {
      return null;
    }
    long units = cut(text, at, end, end - at);
    if (units > LAST_MICROSECOND / NumberText.POWERS[fractionDigits]) {
      return null;
    }
    // The sign counts after the cut, so a time before 1970 is cut toward 1970 like any other.
    long micros = units * NumberText.POWERS[fractionDigits] + cut(text, end + 1, text.end, fractionDigits);
    return withinYears(text.isAt(text.start, '-', '-') ? -micros : micros);
  }

  /** How many digits follow a point up to the end of a text; -1 if that is not what follows. */
  private static int fractionLength(TextBytes text, int point) {
    int end = endOfDigits(text, point + 1);
    int length = end - point - 1;
    boolean isFraction = text.isAt(point, '.', '.') && end == text.end;
    return isFraction && length >= 1 && length <= MAX_FRACTION_DIGITS ? length : -1;
  }
}
