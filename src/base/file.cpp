#include "base/file.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

std::string reason(int error) {
  return std::system_category().message(error);
}

std::string remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "; free some space or write elsewhere";
    case EFBIG: return "; raise the limit on file sizes (ulimit -f) or write elsewhere";
    case EROFS:
    case EACCES:
    case EPERM: return "; choose a place that you may write to";
    case ENOENT:
    case ENOTDIR: return "; make the folder first";
    default: return "";
  }
}

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(ExitCode::environment,
              fmt::format("cannot write {}: {}{}", printable(path), reason(error), remedy(error)));
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

// The mode that open(2) would have given the file; mkostemp gives 0600.
mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::uint64_t limit) {
  const auto cannot_read = [&](std::string_view why) {
    return fail(ExitCode::bad_input, fmt::format("cannot read {}: {}", printable(path), why));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return cannot_read(reason(errno));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return cannot_read(reason(errno));
  if (S_ISDIR(info.st_mode)) return cannot_read("it is a directory");
  if (!S_ISREG(info.st_mode)) return cannot_read("it is not a regular file");
  const auto too_large = [&] {
    return cannot_read(fmt::format("it is larger than the limit of {}B",
                                   format_quantity(static_cast<double>(limit), "")));
  };
  if (static_cast<std::uint64_t>(info.st_size) > limit) return too_large();

  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (true) {
    if (have == bytes.size()) bytes.resize(have + 1);  // one more byte tells whether it grew
    const ssize_t n = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(reason(errno));
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
    if (have > limit) return too_large();
    if (have == bytes.size()) bytes.resize(have * 2);
  }
  bytes.resize(have);
  return bytes;
}

Status write_file_atomically(const std::string& path, std::string_view bytes) {
  std::string target = path;
  if (const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                             &std::free);
      real) {
    target = real.get();
    struct stat info{};
    if (::stat(target.c_str(), &info) != 0) return cannot_write(path, errno);
    if (S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
    if (!S_ISREG(info.st_mode)) {
      return fail(ExitCode::environment,
                  fmt::format("cannot write {}: it is not a regular file", printable(path)));
    }
    if (::access(target.c_str(), W_OK) != 0) return cannot_write(path, errno);
  }

  std::string temporary = target + ".XXXXXX.tmp";
  Descriptor file(::mkostemps(temporary.data(), 4, O_CLOEXEC));
  if (file.get() < 0) return cannot_write(path, errno);
  int error = write_all(file.get(), bytes);
  if (error == 0 && ::fchmod(file.get(), default_mode()) != 0) error = errno;
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (!file.close() && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return cannot_write(path, error);
  }
  // The rename itself must outlive a crash; a file system that cannot promise it is no failure.
  const Descriptor folder(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) static_cast<void>(::fsync(folder.get()));
  return {};
}

}  // namespace joulediff
