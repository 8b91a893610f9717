// Kernels are called by number in the spool; each name is written once, before its first use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "record/output.h"

namespace joulediff::record {

class KernelNames {
 public:
  explicit KernelNames(Output& output) : output_(output) {}

  // Of a kernel, as CUPTI gives it: mangled, in memory that lasts as long as its module.
  std::uint32_t of_kernel(const char* mangled);
  std::uint32_t of(std::string_view name);

 private:
  struct Known {
    const std::string* mangled;
    std::uint32_t id;
  };

  Output& output_;
  std::uint32_t next_ = 0;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<const char*, Known> by_pointer_;
};

}  // namespace joulediff::record
