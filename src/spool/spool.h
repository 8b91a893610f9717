// The spool: the append-only form in which recorders write, one file for each process.
//
// A header of 16 bytes, then records, each `u32 length, u32 type, payload, u32 crc` (little endian;
// the CRC-32 covers length, type and payload). A reader takes whole records until the first that is
// not: what a crashed program left is readable up to its last whole record. Payloads are packed
// structures and strings; docs/recording.md lists them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace joulediff::spool {

// The header: the magic, then the u32 process id and a u32 of zero.
constexpr char kMagic[8] = {'J', 'D', 'S', 'P', 'O', 'O', 'L', '1'};
constexpr std::size_t kHeaderBytes = 16;

enum class Type : std::uint32_t {
  fact = 1,     // string topic, string json
  step = 2,     // Step
  tensor = 3,   // jd_tensor_info without its pointer, then sample_count floats
  op = 4,       // u32 index, string name, u32 n, u64 inputs[n], u32 m, u64 outputs[m], string json
  op_time = 5,  // OpTime[]
  kernel_name = 6,  // u32 id, string name
  kernel = 7,       // Kernel[]
  correlation = 8,  // Correlation[]
  replay = 9,       // u64 begin, u64 end, u64 count, string signature
  dropped = 10,     // u64 kernels that the device's buffers lost
  op_name = 11,     // u32 step, u32 index, string name: order pass, where it is not the one before
  inputs = 12,      // u32 id from 1, string text: before its first use by a step
  device = 13,      // u32 ordinal, string uuid, string name
  launch_stack = 14,     // LaunchStack[]: order pass
  native_stack = 15,     // u32 id, u32 0, u64 pc[]: return addresses, innermost first
  module = 16,           // u64 begin, u64 end, u64 file_offset, string path, string build_id (hex)
  synchronisation = 17,  // Synchronisation[]
  clock = 18,            // Clock
  // Of the launcher's own spool:
  series = 32,  // u32 source, u32 stretch, string channel, Reading[]
  launch = 33,  // string json
};

// Packed structures as they lie in the file; no padding by construction.
struct Step {
  std::uint32_t pass, index;
  std::uint64_t begin_ns, end_ns;
  std::uint32_t inputs, reserved;  // inputs: the id of its text, 0 where unknown
};
struct OpTime {
  std::uint32_t step, index;
  std::uint64_t begin_ns, end_ns;
};
struct Kernel {
  std::uint64_t start_ns, end_ns;
  std::uint32_t name, correlation, pass, stream;
  std::uint32_t grid[3], block[3];
  std::uint32_t device, kind;  // kind: KernelKind
};
enum class KernelKind : std::uint32_t { kernel = 0, copy = 1, set = 2 };
struct Correlation {
  std::uint32_t correlation, step, index, reserved;
};
struct LaunchStack {
  std::uint32_t correlation, stack;
};
struct Synchronisation {
  std::uint64_t start_ns, end_ns;
  std::uint32_t kind, stream, pass, device;  // kind: SynchronisationKind; stream, device: or kNone
};
// As CUpti_ActivitySynchronizationType has it.
enum class SynchronisationKind : std::uint32_t { unknown, event, stream_waits, stream, context };
constexpr std::uint32_t kNone = 0xFFFFFFFF;
// Both clocks at one instant: how a trace that somebody else took is joined.
struct Clock {
  std::uint64_t monotonic_ns, realtime_ns;
};

// Of a meter; uncertainty: half width of the time, -1 where none is stated.
struct Reading {
  std::int64_t time_ns, value, uncertainty_ns;
};

// Writes records. Thread-safe; noexcept. What is appended goes to the file in pieces of about 64
// KiB, with flush(), and when the last piece is a quarter of a second old; every piece is whole
// records. A failed write (a full disk) stops the writer for good, is remembered in ok(), and is
// told by a last diagnostic in the file where that still fits.
class Writer {
 public:
  Writer() = default;
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool open(const char* path) noexcept;
  bool ok() const noexcept { return ok_; }
  void append(Type type, std::string_view payload) noexcept;
  void flush() noexcept;

  // For pthread_atfork: nobody is in the writer while the process forks, and the child neither
  // writes to its parent's file nor keeps what the parent had buffered.
  void before_fork() noexcept;
  void after_fork(bool child) noexcept;

 private:
  void write_out() noexcept;
  bool holds_our_file(int fd) const noexcept;
  bool open_again() noexcept;
  void fail(std::size_t written) noexcept;

  std::mutex mutex_;
  std::atomic<bool> ok_ = false;
  int fd_ = -1;
  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the file behind fd_
  std::uint64_t written_at_ = 0;
  std::string buffer_;
};

struct Record {
  Type type;
  std::string_view payload;
};

// What could be read of a spool, and whether it ended in a torn or damaged record.
struct Contents {
  std::vector<Record> records;  // views into the bytes given to read()
  std::size_t whole_bytes = 0;
  bool torn = false;
};

// False: not a spool at all.
bool read(std::string_view bytes, Contents& contents);

// Payload encoding: little-endian numbers; a string is u32 length and its bytes.
class Packer {
 public:
  template <class T>
  Packer& put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packer& put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every get returns false, and leaves its argument alone, where the payload is too short.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  bool get(T& value) {
    if (rest_.size() < sizeof value) return false;
    __builtin_memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }
  bool get(std::string_view& text) {
    std::uint32_t size = 0;
    if (!get(size) || rest_.size() < size) return false;
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace joulediff::spool
