#include "run/run_file.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#define XXH_INLINE_ALL  // no library to link
#include <xxhash.h>

#include "base/file.h"
#include "base/format.h"
#include "run/database.h"

namespace joulediff::run {

namespace {

// The last bytes of a file. Numbers are little endian; the digest is XXH3-128 in its canonical form
// of all bytes before itself, database and trailer.
constexpr std::string_view kMagic = "JDRUN\r\n\x1A";
constexpr std::size_t kVersionAt = 8;    // u32
constexpr std::size_t kReservedAt = 12;  // u32, 0
constexpr std::size_t kLengthAt = 16;    // u64, bytes of the database
constexpr std::size_t kDigestAt = 24;
constexpr std::size_t kTrailer = 40;

template <class T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
}

template <class T>
T get(std::string_view bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
  }
  return value;
}

std::string digest(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return std::string(reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest);
}

tl::unexpected<Error> bad(std::string message) {
  return fail(ExitCode::bad_input, std::move(message));
}

// Bytes without our trailer: which other file is it?
tl::unexpected<Error> not_a_run(std::string_view bytes) {
  if (bytes.empty()) return bad("the file is empty");
  constexpr std::string_view kSqlite("SQLite format 3\0", 16);
  constexpr std::size_t kApplicationAt = 68;
  if (bytes.starts_with(kSqlite)) {
    std::string ours;
    for (int shift = 24; shift >= 0; shift -= 8) {
      ours.push_back(static_cast<char>(kApplicationId >> shift & 0xFF));
    }
    if (bytes.size() > kApplicationAt && bytes.substr(kApplicationAt).starts_with(ours)) {
      return bad("the file is cut short or was changed; copy or record it again");
    }
    return bad("it is an SQLite database of another program, not a Joulediff run");
  }
  if (bytes.starts_with("JDSPOOL")) {
    return bad("it is a recorder's spool, not a finished run; record the program again");
  }
  return bad("it is not a Joulediff run; joulediff record makes one");
}

struct Unsealed {
  std::string_view database;
  std::uint32_t version = 0;
};

Result<Unsealed> unsealed(std::string_view bytes) {
  const std::size_t size = bytes.size();
  if (size < kTrailer || bytes.substr(size - kTrailer, kMagic.size()) != kMagic) {
    return not_a_run(bytes);
  }
  const std::string_view trailer = bytes.substr(size - kTrailer);
  if (digest(bytes.substr(0, size - kTrailer + kDigestAt)) != trailer.substr(kDigestAt)) {
    return bad("the file is damaged (its digest does not fit); copy or record it again");
  }
  const auto version = get<std::uint32_t>(trailer, kVersionAt);
  if (version > kFormatVersion) {
    return bad(fmt::format(
        "a newer joulediff wrote it (format {}, this one reads up to {}); update joulediff to "
        "read it",
        version, kFormatVersion));
  }
  if (version < 1 || get<std::uint32_t>(trailer, kReservedAt) != 0 ||
      get<std::uint64_t>(trailer, kLengthAt) != size - kTrailer) {
    return bad("its trailer contradicts the file; record it again");
  }
  return Unsealed{bytes.substr(0, size - kTrailer), version};
}

}  // namespace

std::string seal(std::string database, std::uint32_t version) {
  const std::uint64_t length = database.size();
  database += kMagic;
  put(database, version);
  put(database, std::uint32_t{0});
  put(database, length);
  database += digest(database);
  return database;
}

Result<Run> read_run_bytes(std::string_view bytes) {
  JD_ASSIGN(const Unsealed file, unsealed(bytes));
  JD_ASSIGN(Run run, from_database(file.database, file.version));
  JD_TRY(validate(run));
  return run;
}

Result<std::string> write_run_bytes(const Run& run) {
  JD_TRY(validate(run));
  JD_ASSIGN(std::string database, to_database(run));
  if (database.size() + kTrailer > kMaxRunFileBytes) {
    return fail(ExitCode::environment,
                "the run is larger than a run file may be (1 GiB); record "
                "fewer steps or less time");
  }
  return seal(std::move(database));
}

Result<Run> read_run(const std::string& path) {
  JD_ASSIGN(const std::string bytes, read_file(path, kMaxRunFileBytes));
  Result<Run> run = read_run_bytes(bytes);
  if (!run) return fail(std::move(run).error().within("cannot read " + printable(path)));
  return run;
}

Status write_run(const Run& run, const std::string& path) {
  Result<std::string> bytes = write_run_bytes(run);
  if (!bytes) return fail(std::move(bytes).error().within("cannot write " + printable(path)));
  return write_file_atomically(path, *bytes);
}

}  // namespace joulediff::run
