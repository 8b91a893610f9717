// Any bytes as a run file, and as the JSON of one. So that the fuzzer gets past the digest, the
// bytes are sealed as a database too, and taken as patches to a valid one, since pages that fit
// together do not come of chance. What is read must be valid, and must be read again the same from
// what is written of it.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "run/database.h"
#include "run/json.h"
#include "run/run_file.h"
#include "run/test_runs.h"

namespace run = joulediff::run;

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

void check(const joulediff::Result<run::Run>& result) {
  if (!result) {
    expect(!result.error().message.empty());
    expect(result.error().message.find('\n') == std::string::npos);
    return;
  }
  expect(run::validate(*result).has_value());
  const auto bytes = run::write_run_bytes(*result);
  expect(bytes.has_value());
  const auto again = run::read_run_bytes(*bytes);
  expect(again.has_value());
  expect(run::write_run_bytes(*again).value() == *bytes);
}

// The first byte chooses a database of ours; each four that follow are a place in it and the byte
// to put there.
std::string patched(std::string_view patches) {
  if (patches.empty()) return "";
  constexpr std::size_t kDatabases = 8;
  static std::array<std::string, kDatabases> databases;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(patches[i]); };
  std::string& original = databases[byte(0) % kDatabases];
  if (original.empty()) {
    original = run::to_database(run::RandomRun::make(byte(0) % kDatabases, 5)).value();
  }
  std::string database = original;
  for (std::size_t i = 1; i + 4 <= patches.size(); i += 4) {
    const std::size_t place = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    database[place % database.size()] = patches[i + 3];
  }
  return database;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(run::read_run_bytes(bytes));
  check(run::read_run_bytes(run::seal(std::string(bytes))));
  static_cast<void>(run::from_json(bytes));
  check(run::read_run_bytes(run::seal(patched(bytes))));
  return 0;
}
