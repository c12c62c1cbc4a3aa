package leanops.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.iceberg.exceptions.RuntimeIOException;
import org.apache.iceberg.hadoop.HadoopOutputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * How Iceberg reads and writes files of this machine: without Hadoop's settings.
 *
 * <p>By Iceberg's usual way every plan and every task carries a copy of those thousand settings, which for a batch of
 * a few hundred rows costs more than all its rows do.
 *
 * <p>Files to write are Hadoop's all the same: of any others Iceberg's Parquet writer knows no settings, and it reads
 * Hadoop's defaults from XML for each of them.
 */
public final class LocalFileIO implements FileIO {
  private static final long serialVersionUID = 1L;
  private static final String SCHEME = "file:";
  private static final Configuration ALMOST_NO_SETTINGS = new Configuration(false);

  static {
    ALMOST_NO_SETTINGS.setClass("fs.file.impl", LocalFiles.class, FileSystem.class);
  }

  /** Made by Iceberg, which knows this class by its name. */
  public LocalFileIO() {}

  @Override
  public void initialize(Map<String, String> properties) {
    // There is nothing to set.
  }

  @Override
  public Map<String, String> properties() {
    return Map.of();
  }

  @Override
  public InputFile newInputFile(String location) {
    return new LocalInputFile(location, path(location));
  }

  @Override
  public OutputFile newOutputFile(String location) {
    return HadoopOutputFile.fromLocation(location, ALMOST_NO_SETTINGS);
  }

  @Override
  public void deleteFile(String location) {
    try {
      Files.delete(path(location));
    } catch (NoSuchFileException gone) {
      // What is to be gone is gone.
    } catch (IOException error) {
      throw new RuntimeIOException(error, "Failed to delete file: %s", location);
    }
  }

  /** The place of a location, taken as it is written: a percent sign or a blank in it stands for itself. */
  static Path path(String location) {
    if (!location.startsWith(SCHEME)) {
      return Path.of(location);
    }
    String rest = location.substring(SCHEME.length());
    return Path.of(rest.startsWith("//") ? rest.substring(2) : rest);
  }
}
