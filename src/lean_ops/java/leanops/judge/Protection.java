package leanops.judge;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/** Personal data as it may be written. */
@FunctionalInterface
interface Protection {
  int SHOWN = 4;

  /** The text in place of a text. */
  UTF8String of(UTF8String text);

  /** The protection that a schema names; null if it names none. */
  static Protection named(String pii, byte[] innerKey, byte[] outerKey) {
    if (pii == null) {
      return null;
    }
    return switch (pii) {
      case "hash" -> new KeyedHash(innerKey, outerKey);
      case "mask" -> Protection::masked;
      case "drop" -> text -> null;
      default -> throw new IllegalArgumentException("no protection " + pii);
    };
  }

  /** All but the last four characters as {@code *}; of a text that short every one, or nothing would be hidden. */
  private static UTF8String masked(UTF8String text) {
    int characters = text.numChars();
    int hidden = characters > SHOWN ? characters - SHOWN : characters;
    byte[] stars = new byte[hidden];
    Arrays.fill(stars, (byte) '*');
    return UTF8String.concat(UTF8String.fromBytes(stars), text.substring(hidden, characters));
  }

  /** HMAC-SHA-256 (RFC 2104) of the text's UTF-8 bytes, in hexadecimal. */
  final class KeyedHash implements Protection {
    private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private final MessageDigest inner;
    private final MessageDigest outer;

    KeyedHash(byte[] innerKey, byte[] outerKey) {
      inner = begun(innerKey);
      outer = begun(outerKey);
    }

    private static MessageDigest begun(byte[] key) {
      if (key == null) {
        throw new IllegalArgumentException("a schema that hashes is only active while there is a key");
      }
      try {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(key);
        return digest;
      } catch (NoSuchAlgorithmException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public UTF8String of(UTF8String text) {
      return UTF8String.fromBytes(hexadecimal(ended(outer, ended(inner, text.getBytes()))));
    }

    private static byte[] ended(MessageDigest begun, byte[] message) {
      try {
        return ((MessageDigest) begun.clone()).digest(message);
      } catch (CloneNotSupportedException error) {
        throw new IllegalStateException(error);
      }
    }

    private static byte[] hexadecimal(byte[] bytes) {
      byte[] text = new byte[2 * bytes.length];
      for (int at = 0; at < bytes.length; at++) {
        text[2 * at] = DIGITS[(bytes[at] >> 4) & 0xf];
        text[2 * at + 1] = DIGITS[bytes[at] & 0xf];
      }
      return text;
    }
  }
}
