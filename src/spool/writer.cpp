// The writer lives in somebody else's process. So it blocks the signal that a full quota sends
// (SIGXFSZ ends a program), keeps its hands off a descriptor that the host closed and reused, as
// daemons do with all of them, and opens its file again; and it turns every failure, its own lack
// of memory too, into ok() == false.

#include <cerrno>
#include <csignal>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/crc32.h"
#include "spool/spool.h"

namespace joulediff::spool {
namespace {

constexpr std::size_t kPiece = 64 * 1024;
constexpr std::uint64_t kPatience = 250'000'000;  // ns
constexpr int kHighDescriptor = 64;               // hosts count on the numbers below

std::uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_record(std::string& bytes, Type type, std::string_view payload) {
  const std::size_t begin = bytes.size();
  bytes.reserve(begin + 12 + payload.size());  // all or nothing: what follows cannot throw
  put(bytes, static_cast<std::uint32_t>(payload.size()));
  put(bytes, type);
  bytes.append(payload);
  put(bytes, crc32(std::string_view(bytes).substr(begin)));
}

// A thread that is cancelled inside a noexcept function ends the whole program.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = 0;
};

// write() without the death that comes with exceeding RLIMIT_FSIZE. Returns the bytes written.
std::size_t write_quietly(int fd, std::string_view bytes) {
  const Uncancelled uncancelled;
  sigset_t quota, before;
  sigemptyset(&quota);
  sigaddset(&quota, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &quota, &before);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      const timespec now{};
      if (n < 0 && errno == EFBIG && !sigismember(&before, SIGXFSZ))
        sigtimedwait(&quota, nullptr, &now);
      break;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done;
}

}  // namespace

Writer::~Writer() {
  flush();
  if (ok_) ::close(fd_);
}

bool Writer::open(const char* path) noexcept {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) return ok_;
  const Uncancelled uncancelled;
  fd_ = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  struct stat file{};
  if (fd_ < 0 || fstat(fd_, &file) != 0) return false;
  device_ = file.st_dev;
  inode_ = file.st_ino;
  try {
    path_ = path;
    buffer_.assign(kMagic, sizeof kMagic);
    put(buffer_, static_cast<std::uint32_t>(getpid()));
    put(buffer_, std::uint32_t{0});
  } catch (const std::exception&) {
    return false;
  }
  ok_ = true;
  write_out();
  return ok_;
}

void Writer::append(Type type, std::string_view payload) noexcept {
  const std::lock_guard lock(mutex_);
  if (!ok_) return;
  try {
    put_record(buffer_, type, payload);
  } catch (const std::exception&) {
    ok_ = false;
    return;
  }
  if (buffer_.size() >= kPiece || monotonic_ns() - written_at_ > kPatience) write_out();
}

void Writer::flush() noexcept {
  const std::lock_guard lock(mutex_);
  if (ok_) write_out();
}

void Writer::write_out() noexcept {
  written_at_ = monotonic_ns();
  if (buffer_.empty()) return;
  if (!holds_our_file(fd_) && !open_again()) {
    ok_ = false;
    return;
  }
  const std::size_t written = write_quietly(fd_, buffer_);
  if (written < buffer_.size()) fail(written);
  buffer_.clear();
}

bool Writer::holds_our_file(int fd) const noexcept {
  struct stat file{};
  return fstat(fd, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
}

// The host closed our descriptor, and what has its number now is not ours.
bool Writer::open_again() noexcept {
  const Uncancelled uncancelled;
  const int low = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (low < 0) return false;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, kHighDescriptor);
  ::close(low);
  if (high < 0) return false;
  if (!holds_our_file(high)) {
    ::close(high);
    return false;
  }
  fd_ = high;
  return true;
}

// Of `buffer_`, only the first `written` bytes are in the file. Cuts the file back to the end of a
// whole record that leaves room for the diagnostic. Without room the file must end in a torn
// record, so that the loss is seen; where nothing at all was written, one is torn for it.
void Writer::fail(std::size_t written) noexcept {
  ok_ = false;
  try {
    Packer fact;
    fact.put(std::string_view("diagnostic"));
    fact.put(
        std::string_view(R"({"severity":"error","rule":"record.spool_full","message":)"
                         R"("the spool could not be written to its end; recording stopped"})"));
    std::string last;
    put_record(last, Type::fact, fact.bytes());
    const off_t end = lseek(fd_, 0, SEEK_END);
    const bool has_header = buffer_.starts_with(std::string_view(kMagic, sizeof kMagic));
    std::size_t whole = has_header ? kHeaderBytes : 0;
    for (std::uint32_t size = 0; whole + 12 <= written; whole += size + 12) {
      __builtin_memcpy(&size, buffer_.data() + whole, sizeof size);
      if (whole + size + 12 + last.size() > written) break;
    }
    if (whole + last.size() <= written) {
      if (ftruncate(fd_, end - static_cast<off_t>(written - whole)) == 0) write_quietly(fd_, last);
    } else if (written == 0 && end > static_cast<off_t>(kHeaderBytes)) {
      if (write_quietly(fd_, last) == 0 && ftruncate(fd_, end - 1) != 0) return;
    }
  } catch (const std::exception&) {
    return;
  }
}

void Writer::before_fork() noexcept {
  mutex_.lock();
}

void Writer::after_fork(bool child) noexcept {
  if (child) {
    if (ok_) ::close(fd_);
    ok_ = false;
    fd_ = -1;
    buffer_.clear();
  }
  mutex_.unlock();
}

}  // namespace joulediff::spool
