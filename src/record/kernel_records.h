// What CUPTI's records say, into the spool: the data side of Kernels. CUPTI hands buffers over on
// threads of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/callers.h"
#include "record/clock.h"
#include "record/cupti.h"
#include "record/kernel_names.h"
#include "record/operators.h"
#include "record/output.h"
#include "record/raw_capture.h"
#include "spool/kernels.h"

namespace joulediff::record {

class KernelRecords {
 public:
  KernelRecords(Output& output, Operators& operators, const cupti::Functions& cupti)
      : output_(output), operators_(operators), cupti_(cupti), names_(output) {}

  // `converts_clock`: CUPTI stamps with the time of day.
  void start(std::uint32_t cupti_version, bool converts_clock);
  void mark_clock() noexcept;
  // What comes from now on belongs to `pass` (JD_WARMUP: it is thrown away). `joins`: it is to be
  // joined with the operators that called for it.
  void begin(std::uint32_t pass, bool joins);
  // As begin(), but what was launched up to this correlation id still belongs to the order pass.
  void begin_after(std::uint32_t last_of_order, std::uint32_t pass);
  std::uint32_t pass() const { return pass_; }
  // To record a set takes the device as long as a small set does. Of the order pass's time on the
  // device, how much sets took; none: there were none, or nothing has come yet.
  std::optional<double> share_of_sets();

  // Whether anything was delivered since expect().
  void expect();
  bool silent();

  // CUPTI is done with this buffer.
  void completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                 std::size_t valid) noexcept;
  void flush();
  // The pass's records are all here: joins them with their callers and reports what was lost.
  void settle(const Callers::Calls& calls);

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork(bool child) noexcept;

 private:
  void decode(const cupti::Activity& record);
  void add(spool::Kernel kernel, std::uint32_t context);
  template <class Record>
  void add_copy(const Record& record);
  void add(const cupti::SynchronizationActivity& record);
  std::uint32_t pass_of(std::uint32_t correlation);
  std::uint64_t monotonic(std::uint64_t stamp) const;
  void write_batch();

  Output& output_;
  Operators& operators_;
  const cupti::Functions& cupti_;

  std::mutex mutex_;
  RawCapture raw_;
  KernelNames names_;
  std::uint32_t pass_ = 0;
  std::uint32_t order_until_ = 0;  // the last correlation id of the order pass; 0: it is over
  bool joins_ = false;
  bool converts_clock_ = false;
  RealtimeConverter clock_;
  spool::KernelBatch batch_;
  std::vector<spool::Synchronisation> waits_;
  std::uint64_t delivered_ = 0, dropped_ = 0, incomplete_ = 0, unjoined_ = 0, of_graphs_ = 0;
  std::uint64_t order_ns_ = 0, order_set_ns_ = 0;  // on the device, of all and of sets
  std::unordered_map<std::uint32_t, std::uint32_t> device_of_context_;
  std::uint32_t last_context_ = spool::kNone;
  std::unordered_map<std::uint32_t, std::uint64_t>
      kernel_ns_;  // by correlation, of a pass that joins
};

}  // namespace joulediff::record
