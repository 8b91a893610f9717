// The steps, and the shapes of what they worked on.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "record/output.h"

namespace joulediff::record {

class Steps {
 public:
  explicit Steps(Output& output) : output_(output) {}

  void add(spool::Step step, const char* inputs) {
    if (inputs != nullptr) step.inputs = id_of(inputs);
    output_.append(spool::Type::step, {reinterpret_cast<const char*>(&step), sizeof step});
  }

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork(bool child) noexcept {
    if (child) ids_.clear();  // its spool names them anew
    mutex_.unlock();
  }

 private:
  // A program whose inputs never repeat must not fill the memory; what is left out is unknown.
  static constexpr std::size_t kMost = 4096;

  std::uint32_t id_of(const char* inputs) {
    const std::lock_guard lock(mutex_);
    const auto known = ids_.find(inputs);
    if (known != ids_.end()) return known->second;
    if (ids_.size() >= kMost) return 0;
    const auto id = static_cast<std::uint32_t>(ids_.size() + 1);
    ids_.emplace(inputs, id);
    spool::Packer packer;
    output_.append(spool::Type::inputs, packer.put(id).put(std::string_view(inputs)).bytes());
    return id;
  }

  Output& output_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

}  // namespace joulediff::record
