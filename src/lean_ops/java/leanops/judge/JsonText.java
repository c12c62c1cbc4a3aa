package leanops.judge;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.types.UTF8String;

/** JSON in the making, as UTF-8; only quotes, backslashes and control characters are written as escapes. */
final class JsonText {
  private static final String SHORT_ESCAPES = "btn?fr";
  private static final byte[] HEXADECIMAL = "0123456789ABCDEF".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] NULL = "null".getBytes(StandardCharsets.US_ASCII);

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  int size() {
    return bytes.size();
  }

  byte[] bytes() {
    return bytes.toByteArray();
  }

  UTF8String text() {
    return UTF8String.fromBytes(bytes());
  }

  /** A sign of JSON's own. */
  JsonText sign(char sign) {
    bytes.write(sign);
    return this;
  }

  /** JSON that is ready. */
  JsonText raw(byte[] json) {
    bytes.writeBytes(json);
    return this;
  }

  /** A number; null is null. */
  JsonText number(Long number) {
    return raw(number == null ? NULL : number.toString().getBytes(StandardCharsets.US_ASCII));
  }

  /** A text in quotes; null is null. */
  JsonText quoted(UTF8String text) {
    if (text == null) {
      return raw(NULL);
    }
    sign('"');
    for (byte one : text.isValid() ? text.getBytes() : text.makeValid().getBytes()) {
      character(one);
    }
    return sign('"');
  }

  private void character(byte one) {
    if (one == '"' || one == '\\') {
      sign('\\').sign((char) one);
    } else if (one >= 0 && one < ' ') {
      control(one);
    } else {
      bytes.write(one);
    }
  }

  private void control(byte one) {
    boolean isShort = one >= '\b' && one <= '\r' && one != 0x0b;
    if (isShort) {
      sign('\\').sign(SHORT_ESCAPES.charAt(one - '\b'));
    } else {
      sign('\\').sign('u').sign('0').sign('0');
      bytes.write(HEXADECIMAL[one >> 4]);
      bytes.write(HEXADECIMAL[one & 0xf]);
    }
  }
}
