// Any bytes as a spool: records lie inside the bytes, one after another, and reading the whole part
// alone gives the same records without a torn end. The payloads are unpacked as strings.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spool/spool.h"

namespace spool = joulediff::spool;

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  spool::Contents contents;
  if (!spool::read(bytes, contents)) return 0;
  expect(contents.whole_bytes <= size);
  const char* end = bytes.data();
  for (const spool::Record& record : contents.records) {
    const char* const begin = record.payload.data();
    expect(begin >= end && begin + record.payload.size() <= bytes.data() + contents.whole_bytes);
    end = begin + record.payload.size();
    spool::Unpacker unpacker(record.payload);
    for (std::string_view text; unpacker.get(text);) {
      expect(text.data() + text.size() <= end);
    }
  }
  spool::Contents whole;
  expect(spool::read(bytes.substr(0, contents.whole_bytes), whole));
  expect(!whole.torn && whole.records.size() == contents.records.size());
  return 0;
}
