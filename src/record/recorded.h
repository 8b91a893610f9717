// For tests: runs a body in a process of its own, with the recorder in it, and reads what it left.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spool/spool.h"

namespace joulediff::record {

struct Recorded {
  int status = -1;                           // of waitpid: 0 is a clean exit
  std::string out, err;                      // what the process printed
  std::string folder;                        // gone by now
  std::map<std::string, std::string> files;  // name of the spool to its bytes
  std::vector<spool::Record> records;        // of all files, in the order of their names
  bool torn = false;

  std::vector<std::string_view> payloads(spool::Type type) const;
  // The concatenated packed structures of a type.
  template <class T>
  std::vector<T> all(spool::Type type) const {
    std::vector<T> out_values;
    for (const auto payload : payloads(type)) {
      spool::Unpacker unpacker(payload);
      for (T value{}; unpacker.get(value);) out_values.push_back(value);
    }
    return out_values;
  }
  std::vector<spool::Kernel> kernels() const;
  std::vector<std::string> facts(std::string_view topic) const;
  std::map<std::uint32_t, std::string> kernel_names() const;
};

using Environment = std::map<std::string, std::string>;

// JOULEDIFF_SPOOL is a fresh folder unless `environment` says otherwise, and JOULEDIFF_CUPTI a path
// where nothing is.
Recorded recorded(const std::function<void()>& body, const Environment& environment = {});

// In a body: ends the process with a message unless `condition` holds.
void require(bool condition, const char* what);

}  // namespace joulediff::record

#define JD_REQUIRE(condition) ::joulediff::record::require((condition), #condition)
