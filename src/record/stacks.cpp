#include "record/stacks.h"

#include <exception>
#include <string_view>
#include <unwind.h>

#include "record/modules.h"

namespace joulediff::record {
namespace {

constexpr std::uint32_t kMostFrames = 128;
constexpr std::size_t kSlots = std::size_t{1} << 15;  // half of them may be taken
constexpr std::size_t kBatch = 1024;

struct Frames {
  std::uint64_t pc[kMostFrames];
  std::uint32_t count = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* out) noexcept {
  auto& frames = *static_cast<Frames*>(out);
  const std::uint64_t pc = _Unwind_GetIP(context);
  if (pc == 0 || frames.count == kMostFrames) return _URC_END_OF_STACK;
  frames.pc[frames.count++] = pc;
  return _URC_NO_REASON;
}

std::uint64_t hash_of(const std::uint64_t* frames, std::uint32_t count) {
  std::uint64_t hash = 0x9E3779B97F4A7C15u;
  for (std::uint32_t i = 0; i < count; ++i) {
    hash = (hash ^ frames[i]) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  }
  return hash;
}

// A runtime call may launch through a driver call that has its correlation id.
thread_local std::uint32_t last_of_thread = 0;

}  // namespace

void LaunchStacks::begin() {
  const std::lock_guard lock(mutex_);
  slots_.assign(kSlots, {});
  batch_.reserve(kBatch);
  taken_ = 0;
  launches_ = unnamed_ = 0;
  last_correlation_ = 0;
  write_modules();
  on_ = true;
}

void LaunchStacks::end() {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  on_ = false;
  write_batch();
  write_modules();  // those loaded since
  slots_ = {};
  modules_.clear();
  if (unnamed_ > 0)
    output_.diagnostic("note", "record.many_stacks",
                       std::to_string(unnamed_) +
                           " launches have no native stack: there were too many distinct ones");
}

std::uint64_t LaunchStacks::launched(std::uint32_t correlation) noexcept {
  if (!on() || last_of_thread == correlation) return 0;
  last_of_thread = correlation;
  Frames frames;
  _Unwind_Backtrace(add_frame, &frames);
  try {
    const std::lock_guard lock(mutex_);
    if (!on_) return 0;
    if (const std::uint32_t id = id_of(frames.pc, frames.count); id != 0)
      batch_.push_back({correlation, id});
    else
      ++unnamed_;
    if (batch_.size() >= kBatch) write_batch();
    last_correlation_ = std::max(last_correlation_, correlation);
    return ++launches_;
  } catch (const std::exception&) {
    output_.switch_off();
    return 0;
  }
}

std::uint32_t LaunchStacks::last_correlation() {
  const std::lock_guard lock(mutex_);
  return last_correlation_;
}

// 0: the table is full.
std::uint32_t LaunchStacks::id_of(const std::uint64_t* frames, std::uint32_t count) {
  const std::uint64_t hash = hash_of(frames, count);
  std::size_t at = hash % kSlots;
  for (; slots_[at].id != 0; at = (at + 1) % kSlots)
    if (slots_[at].hash == hash) return slots_[at].id;
  if (taken_ == kSlots / 2) return 0;
  ++taken_;
  slots_[at] = {hash, ++ids_};
  spool::Packer packer;
  packer.put(ids_).put(std::uint32_t{0});
  for (std::uint32_t i = 0; i < count; ++i) packer.put(frames[i]);
  output_.append(spool::Type::native_stack, packer.bytes());
  return ids_;
}

void LaunchStacks::write_modules() {
  for (const Module& module : modules_of_process()) {
    if (!modules_.emplace(module.begin, module.path).second) continue;
    spool::Packer packer;
    packer.put(module.begin).put(module.end).put(module.file_offset);
    packer.put(std::string_view(module.path)).put(std::string_view(module.build_id));
    output_.append(spool::Type::module, packer.bytes());
  }
}

void LaunchStacks::write_batch() {
  if (batch_.empty()) return;
  output_.append(spool::Type::launch_stack, {reinterpret_cast<const char*>(batch_.data()),
                                             batch_.size() * sizeof(spool::LaunchStack)});
  batch_.clear();
}

void LaunchStacks::after_fork(bool child) noexcept {
  if (child) {
    on_ = false;
    batch_.clear();
    modules_.clear();
  }
  mutex_.unlock();
}

}  // namespace joulediff::record
