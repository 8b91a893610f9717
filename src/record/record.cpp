// The C ABI. Everything here runs in somebody else's program: each function is a no-op where the
// recorder is off, and nothing that goes wrong inside leaves it.

#include "joulediff/record.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <vector>

#include "record/clock.h"
#include "record/kernels.h"
#include "record/operators.h"
#include "record/output.h"
#include "record/steps.h"

#define JD_EXPORT extern "C" __attribute__((visibility("default")))

namespace joulediff::record {
namespace {

// What a process records with.
struct Process {
  Output output;
  Steps steps{output};
  Operators operators{output};
  Kernels kernels{output, operators};
  std::atomic<bool> attended = false;     // somebody calls the C ABI and makes the passes
  std::atomic<bool> exits_first = false;  // an exit handler of ours is younger than CUPTI's
};

struct OpenOperator {
  std::uint32_t step, index;
  std::uint64_t begin_ns;
  std::uint64_t outer;  // what the thread was in before
};
thread_local std::vector<OpenOperator> open_operators;

// Made when the library is loaded, not on first use: a fork in the middle of a first use would
// leave the child waiting for it for good. Never destroyed: the host's threads and CUPTI's may come
// in while the process ends.
Process* start();
Process* const instance = start();
Process& process() {
  return *instance;
}

void flush(Process& p) {
  p.operators.write_out();
  p.output.flush();
}

// Handlers run youngest first, and CUPTI must be asked for its last buffers before its own and
// CUDA's handlers take it down: so this one is registered again when each has come up. Only the
// first call finds something to do.
void at_exit() noexcept {
  try {
    process().kernels.finish();
    process().output.clock();
    flush(process());
  } catch (const std::exception&) {
    process().output.switch_off();
  }
}

void before_fork() {
  process().kernels.before_fork();
  process().operators.before_fork();
  process().steps.before_fork();
  process().output.before_fork();
}

void after_fork(bool child) {
  process().output.after_fork(child);
  process().steps.after_fork(child);
  process().operators.after_fork(child);
  process().kernels.after_fork(child);
}

Process* start() {
  auto* const p = new Process;
  std::atexit(at_exit);
  pthread_atfork(before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  return p;
}

// Runs `body` where the recorder is on, and switches it off if that fails. What only asks or tells
// does not make the passes: the program may yet turn out to be one that nobody attends to.
enum class Attends { yes, no };
template <class Body>
void recording(Body body, Attends attends = Attends::yes) noexcept {
  Process& p = process();
  if (!p.output.on()) return;
  if (attends == Attends::yes) p.attended.store(true, std::memory_order_relaxed);
  try {
    body(p);
  } catch (const std::exception&) {
    p.output.switch_off();
  }
}

std::string_view text(const char* s) {
  return s != nullptr ? s : "";
}

template <class T>
std::string_view bytes(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), values != nullptr ? count * sizeof(T) : 0};
}

std::uint32_t count_of(const void* values, std::uint32_t count) {
  return values != nullptr ? count : 0;
}

}  // namespace
}  // namespace joulediff::record

using namespace joulediff;
using namespace joulediff::record;

JD_EXPORT int jd_active(void) {
  int abi = 0;
  recording([&](Process&) { abi = JD_ABI; }, Attends::no);
  return abi;
}

JD_EXPORT uint64_t jd_now(void) {
  return now_ns();
}

JD_EXPORT void jd_fact(const char* topic, const char* json) {
  recording([&](Process& p) { p.output.fact(text(topic), text(json)); }, Attends::no);
}

JD_EXPORT void jd_step(uint32_t pass, uint32_t index, uint64_t begin_ns, uint64_t end_ns,
                       const char* inputs) {
  recording([&](Process& p) { p.steps.add({pass, index, begin_ns, end_ns, 0, 0}, inputs); });
}

JD_EXPORT void jd_tensor(const jd_tensor_info* tensor) {
  recording([&](Process& p) {
    if (tensor == nullptr) return;
    jd_tensor_info info = *tensor;
    info.dims = std::min<std::uint32_t>(info.dims, JD_MAX_DIMS);
    info.sample_count = count_of(info.sample, info.sample_count);
    std::string payload(reinterpret_cast<const char*>(&info), offsetof(jd_tensor_info, sample));
    payload += bytes(info.sample, info.sample_count);
    p.output.append(spool::Type::tensor, payload);
  });
}

JD_EXPORT void jd_operator(uint32_t index, const char* name, const uint64_t* inputs,
                           uint32_t input_count, const uint64_t* outputs, uint32_t output_count,
                           const char* json) {
  recording([&](Process& p) {
    spool::Packer packer;
    packer.put(index).put(text(name));
    const auto put_ids = [&](const std::uint64_t* ids, std::uint32_t count) {
      packer.put(count);
      for (std::uint32_t i = 0; i < count; ++i) packer.put(ids[i]);
    };
    put_ids(inputs, count_of(inputs, input_count));
    put_ids(outputs, count_of(outputs, output_count));
    packer.put(text(json));
    p.output.append(spool::Type::op, packer.bytes());
  });
}

JD_EXPORT void jd_operator_begin(uint32_t step, uint32_t index, const char* name) {
  recording([&](Process& p) {
    p.operators.named(step, index, name);
    const std::uint64_t outer = Callers::enter(std::uint64_t{step} << 32 | index);
    open_operators.push_back({step, index, now_ns(), outer});
  });
}

JD_EXPORT void jd_operator_end(void) {
  if (open_operators.empty()) return;
  const std::uint64_t end_ns = now_ns();
  const OpenOperator ended = open_operators.back();
  open_operators.pop_back();
  Callers::enter(ended.outer);
  recording(
      [&](Process& p) { p.operators.executed(ended.step, ended.index, ended.begin_ns, end_ns); });
}

JD_EXPORT void jd_operator_took(uint32_t step, uint32_t index, const char* name, uint64_t begin_ns,
                                uint64_t end_ns) {
  if (end_ns < begin_ns) return;
  recording([&](Process& p) {
    p.operators.named(step, index, name);
    p.operators.executed(step, index, begin_ns, end_ns);
  });
}

JD_EXPORT int jd_kernels(uint32_t pass) {
  int recorded = 0;
  recording([&](Process& p) {
    recorded = p.kernels.record(pass);
    p.output.clock();
    if (recorded != 0 && !p.exits_first.exchange(true)) std::atexit(at_exit);
    flush(p);
  });
  return recorded;
}

JD_EXPORT double jd_operator_seconds(uint32_t index) {
  double seconds = -1;
  recording([&](Process& p) { seconds = p.operators.seconds(index); });
  return seconds;
}

JD_EXPORT void jd_replay(const char* signature, uint64_t begin_ns, uint64_t end_ns,
                         uint64_t count) {
  recording([&](Process& p) {
    spool::Packer packer;
    packer.put(begin_ns).put(end_ns).put(count).put(text(signature));
    p.output.append(spool::Type::replay, packer.bytes());
  });
}

JD_EXPORT void jd_flush(void) {
  recording([](Process& p) {
    p.kernels.flush();
    flush(p);
  });
}

// CUDA calls this before anything else of CUDA runs in the process.
JD_EXPORT int InitializeInjection(void) {
  Process& p = process();
  if (!p.output.on()) return 1;
  try {
    p.kernels.inject(p.attended.load(std::memory_order_relaxed), [] { std::atexit(at_exit); });
    std::atexit(at_exit);
  } catch (const std::exception&) {
    p.output.switch_off();
  }
  return 1;
}
