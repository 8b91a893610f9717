// The buffers that CUPTI fills: made on need up to a bound, then used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace joulediff::record {

class Buffers {
 public:
  // CUPTI keeps a buffer for each thread that launches. What it cannot have it drops and counts.
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMost = 256;

  void reserve(std::size_t count) {
    const std::lock_guard lock(mutex_);
    // Zeroed, hence touched: the program's first launches should not pay for page faults.
    while (all_.size() < count) add(std::make_unique<std::uint8_t[]>(kBytes));
  }
  // Null: there are as many as there may be, or no memory.
  std::uint8_t* take() noexcept {
    try {
      const std::lock_guard lock(mutex_);
      if (free_.empty()) {
        if (all_.size() >= kMost) return nullptr;
        add(std::make_unique_for_overwrite<std::uint8_t[]>(kBytes));
      }
      std::uint8_t* const buffer = free_.back();
      free_.pop_back();
      return buffer;
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  void give_back(std::uint8_t* buffer) noexcept {
    const std::lock_guard lock(mutex_);
    if (buffer != nullptr) free_.push_back(buffer);  // has room: it was in there before
  }
  // How many CUPTI has.
  std::size_t outside() noexcept {
    const std::lock_guard lock(mutex_);
    return all_.size() - free_.size();
  }

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }

 private:
  void add(std::unique_ptr<std::uint8_t[]> buffer) {
    free_.reserve(all_.size() + 1);
    all_.push_back(std::move(buffer));
    free_.push_back(all_.back().get());
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<std::uint8_t[]>> all_;
  std::vector<std::uint8_t*> free_;
};

}  // namespace joulediff::record
