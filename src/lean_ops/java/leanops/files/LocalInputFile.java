package leanops.files;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.exceptions.RuntimeIOException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/** A file to read. */
final class LocalInputFile implements InputFile {
  private final String location;
  private final Path path;

  LocalInputFile(String location, Path path) {
    this.location = location;
    this.path = path;
  }

  @Override
  public long getLength() {
    try {
      return Files.size(path);
    } catch (NoSuchFileException gone) {
      throw new NotFoundException(gone, "File does not exist: %s", location);
    } catch (IOException error) {
      throw new RuntimeIOException(error, "Failed to get status for file: %s", location);
    }
  }

  @Override
  public SeekableInputStream newStream() {
    try {
      return new Stream(FileChannel.open(path, StandardOpenOption.READ));
    } catch (NoSuchFileException gone) {
      throw new NotFoundException(gone, "Failed to open input stream for file: %s", location);
    } catch (IOException error) {
      throw new RuntimeIOException(error, "Failed to open input stream for file: %s", location);
    }
  }

  @Override
  public String location() {
    return location;
  }

  @Override
  public boolean exists() {
    return Files.exists(path);
  }

  @Override
  public String toString() {
    return location;
  }

  /** Reads ahead a little: Avro and JSON are read byte by byte. */
  private static final class Stream extends SeekableInputStream {
    private static final int AHEAD = 64 * 1024;

    private final FileChannel channel;
    private final ByteBuffer ahead = ByteBuffer.allocate(AHEAD).limit(0);

    Stream(FileChannel channel) {
      this.channel = channel;
    }

    @Override
    public long getPos() throws IOException {
      return channel.position() - ahead.remaining();
    }

    @Override
    public void seek(long position) throws IOException {
      if (position < 0) {
        throw new EOFException("no place in a file: " + position);
      }
      long start = channel.position() - ahead.limit();
      if (position >= start && position < channel.position()) {
        ahead.position((int) (position - start));
      } else {
        ahead.limit(0);
        channel.position(position);
      }
    }

    @Override
    public int read() throws IOException {
      return fill() ? ahead.get() & 0xff : -1;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      if (!ahead.hasRemaining() && length >= AHEAD) {
        return channel.read(ByteBuffer.wrap(into, offset, length));
      }
      if (!fill()) {
        return -1;
      }
      int count = Math.min(length, ahead.remaining());
      ahead.get(into, offset, count);
      return count;
    }

    @Override
    public long skip(long count) throws IOException {
      long from = getPos();
      long to = Math.max(from, Math.min(channel.size(), from + count));
      seek(to);
      return to - from;
    }

    @Override
    public int available() {
      return ahead.remaining();
    }

    @Override
    public void close() {
      try {
        channel.close();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }

    /** Whether there is a byte to take. */
    private boolean fill() throws IOException {
      if (!ahead.hasRemaining()) {
        ahead.clear();
        int count = channel.read(ahead);
        ahead.position(0).limit(Math.max(count, 0));
      }
      return ahead.hasRemaining();
    }
  }
}
