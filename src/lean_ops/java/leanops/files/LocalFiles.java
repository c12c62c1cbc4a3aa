package leanops.files;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * This machine's files, as Hadoop's own class has them but for two things that cost more than a small file does.
 *
 * <p>Hadoop without its native library starts the program chmod for every file that it makes; here the process's umask
 * decides, as it does for files that Python writes. And no second file with checksums is made beside each: Python and
 * DuckDB, who read the same files, have never looked at those.
 */
public final class LocalFiles extends LocalFileSystem {
  /** Made by Hadoop, which knows this class by its name. */
  public LocalFiles() {
    super(new Plain());
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setWriteChecksum(false);
  }

  private static final class Plain extends RawLocalFileSystem {
    @Override
    public void setPermission(Path file, FsPermission permission) {
      // The umask has done it.
    }
  }
}
