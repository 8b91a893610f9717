#include "record/operators.h"

#include <algorithm>

namespace joulediff::record {
namespace {

constexpr std::size_t kBatch = 1024;

}  // namespace

void Operators::executed(std::uint32_t step, std::uint32_t index, std::uint64_t begin_ns,
                         std::uint64_t end_ns) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    times_.push_back({step, index, begin_ns, end_ns});
    full = times_.size() >= kBatch;
    Total& total = totals_[index];
    if (total.steps == 0 || total.last_step != step) ++total.steps;
    total.last_step = step;
    total.host_ns += end_ns - begin_ns;
  }
  if (full) write_out();
}

void Operators::named(std::uint32_t step, std::uint32_t index, const char* name) {
  if (name == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    std::string& last = names_[index];
    if (last == name) return;
    last = name;
  }
  spool::Packer packer;
  output_.append(spool::Type::op_name,
                 packer.put(step).put(index).put(std::string_view(name)).bytes());
}

void Operators::charge(std::uint32_t index, std::uint64_t ns) {
  const std::lock_guard lock(mutex_);
  totals_[index].kernel_ns += ns;
}

void Operators::kernels_were_recorded() {
  const std::lock_guard lock(mutex_);
  kernels_ = true;
}

double Operators::seconds(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  const auto found = totals_.find(index);
  if (found == totals_.end() || found->second.steps == 0) return -1;
  const Total& total = found->second;
  return static_cast<double>(kernels_ ? total.kernel_ns : total.host_ns) * 1e-9 / total.steps;
}

void Operators::write_out() {
  std::vector<spool::OpTime> times;
  {
    const std::lock_guard lock(mutex_);
    times.swap(times_);
  }
  if (times.empty()) return;
  output_.append(spool::Type::op_time, {reinterpret_cast<const char*>(times.data()),
                                        times.size() * sizeof(spool::OpTime)});
}

void Operators::after_fork(bool child) noexcept {
  if (child) {
    times_.clear();
    totals_.clear();
    names_.clear();
    kernels_ = false;
  }
  mutex_.unlock();
}

}  // namespace joulediff::record
