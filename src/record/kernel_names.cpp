#include "record/kernel_names.h"

#include <cstdlib>
#include <cxxabi.h>

namespace joulediff::record {
namespace {

// Names are few in every program that is not bent on making more.
constexpr std::size_t kMostNames = std::size_t{1} << 14;

std::string demangled(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;  // a name of C would be taken for a type
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return mangled;
  std::string name = text;
  std::free(text);
  return name;
}

}  // namespace

// CUPTI gives the same pointer for the same kernel, but an unloaded module's may come again with
// another name behind it.
std::uint32_t KernelNames::of_kernel(const char* mangled) {
  if (mangled == nullptr) mangled = "?";
  const auto known = by_pointer_.find(mangled);
  if (known != by_pointer_.end() && *known->second.mangled == mangled) return known->second.id;
  if (by_pointer_.size() >= kMostNames) by_pointer_.clear();
  const std::uint32_t id = of(mangled);
  by_pointer_[mangled] = {&ids_.find(mangled)->first, id};
  return id;
}

std::uint32_t KernelNames::of(std::string_view name) {
  const std::string mangled(name);
  if (const auto known = ids_.find(mangled); known != ids_.end()) return known->second;
  if (ids_.size() >= kMostNames) {  // those that come again are written again
    by_pointer_.clear();
    ids_.clear();
  }
  const std::uint32_t id = next_++;
  ids_.emplace(mangled, id);
  spool::Packer packer;
  output_.append(spool::Type::kernel_name,
                 packer.put(id).put(std::string_view(demangled(mangled))).bytes());
  return id;
}

}  // namespace joulediff::record
