#include "record/step.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <pthread.h>
#include <string_view>
#include <utility>

namespace joulediff::record {
namespace {

constexpr double kLongestTrace = 86400;
constexpr int kMostEmpty = 16;  // then it is a program that runs no operator through jd_run

// Made when the library is loaded and never destroyed, as what it records into.
Stepper* const stepper = new Stepper;
thread_local bool inside_operator = false;

double number(const char* name, double otherwise) {
  const char* const given = std::getenv(name);
  if (given == nullptr || *given == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(given, &end);
  return *end == '\0' && value >= 0 ? value : otherwise;
}

bool names(std::string_view list, std::string_view pass) {
  while (!list.empty()) {
    const std::string_view first = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), first.size() + 1));
    if (first == pass) return true;
  }
  return false;
}

// What JOULEDIFF_PASSES, _STEPS and _TRACE_SECONDS ask for.
Asked asked_by_environment() {
  Asked asked;
  const char* const passes = std::getenv("JOULEDIFF_PASSES");
  if (passes != nullptr && *passes != '\0')
    asked = {names(passes, "values"), names(passes, "order"), names(passes, "trace"),
             names(passes, "replay")};
  constexpr double kMostSteps = 1e9;
  asked.steps = static_cast<std::uint64_t>(std::min(kMostSteps, number("JOULEDIFF_STEPS", 20)));
  asked.seconds = std::min(kLongestTrace, number("JOULEDIFF_TRACE_SECONDS", 0));
  return asked;
}

// An engine that computes on the host has none, and CUDA's libraries no business in its process.
void record_kernels(std::uint32_t pass) {
  if (memory().of_device()) jd_kernels(pass);
}

}  // namespace

bool Stepper::start() {
  if (jd_active() == 0) {
    off_ = true;
    return false;
  }
  schedule_ = std::make_unique<Schedule>(asked_by_environment());
  following_ = schedule_->next(jd_now());
  record_kernels(JD_WARMUP);  // before the device is in use: we make the passes
  std::atexit([] { stepper->finish(); });
  return true;
}

bool Stepper::wanted() {
  if (off_) return false;
  const std::lock_guard lock(mutex_);
  if (!schedule_ && !start()) return false;
  return following_ != kNoPass || pass() != kNoPass;
}

int Stepper::begin(const char* inputs) {
  if (off_) return kNoPass;
  const std::lock_guard lock(mutex_);
  if (!schedule_ && !start()) return kNoPass;
  if (pass() != kNoPass && refused()) return pass();
  if (pass() != kNoPass) end_step();
  if (following_ == kNoPass) return kNoPass;
  const bool within_trace = following_ == JD_TRACE && entered_ == JD_TRACE;
  if (!within_trace) memory().synchronize();
  if (following_ != entered_) enter(following_);
  inputs_ = inputs != nullptr ? inputs : "";
  index_ = 0;
  noting_ = entered_ == JD_ORDER && seen_in_order_.empty();
  owner_ = std::this_thread::get_id();
  if (!within_trace) memory().synchronize();
  begin_ns_ = jd_now();
  pass_.store(entered_, std::memory_order_relaxed);
  return entered_;
}

void Stepper::end() {
  if (off_) return;
  const std::lock_guard lock(mutex_);
  if (pass() != kNoPass && !refused()) end_step();
}

// A step cannot end or begin while one of its operators runs.
bool Stepper::refused() {
  if (!operator_runs_) return false;
  if (!std::exchange(early_told_, true))
    tell("warning", "step_in_operator",
         "jd_step_begin and jd_step_end do nothing while an operator of the step runs: call them "
         "outside of jd_run");
  return true;
}

void Stepper::end_step() {
  // It was begun too early; the next is one more try.
  if (entered_ == JD_VALUES && index_ == 0 && ++empty_ <= kMostEmpty) {
    pass_.store(kNoPass, std::memory_order_relaxed);
    return;
  }
  following_ = schedule_->next(jd_now());
  const bool within_trace = following_ == JD_TRACE && entered_ == JD_TRACE;
  if (!within_trace) memory().synchronize();
  pass_.store(kNoPass, std::memory_order_relaxed);
  tell_step(entered_);
  if (following_ != entered_) leave();
  if (following_ != kNoPass) return;
  jd_flush();
  if (Launcher launcher; launcher.connect()) launcher.done();
}

void Stepper::tell_step(int pass) {
  jd_step(static_cast<std::uint32_t>(pass), step_++, begin_ns_, jd_now(),
          inputs_.empty() ? nullptr : inputs_.c_str());
}

void Stepper::enter(int pass) {
  entered_ = pass;
  if (pass == JD_ORDER || pass == JD_TRACE) record_kernels(static_cast<std::uint32_t>(pass));
  if (pass == JD_VALUES) values_ = std::make_unique<Values>();
  if (pass == JD_REPLAY) {
    replay_ = std::make_unique<Replay>(seen_in_order_);
    replay_->begin();
  }
}

void Stepper::leave() {
  if (entered_ == JD_ORDER || entered_ == JD_TRACE) record_kernels(JD_WARMUP);
  if (values_) values_->report();
  if (replay_) replay_->end();
  if (entered_ == JD_ORDER) compare_orders();
  values_.reset();
  replay_.reset();
  entered_ = kNoPass;
}

// Operators are known by the signature that the values pass gave them.
void Stepper::compare_orders() {
  if (seen_in_values_.empty()) return;
  bool same_names = seen_in_values_.size() == seen_in_order_.size(), same_shapes = true;
  const std::size_t common = std::min(seen_in_values_.size(), seen_in_order_.size());
  for (std::size_t i = 0; i < common; ++i) {
    const Described& known = seen_in_values_[i];
    if (known.name != seen_in_order_[i].name) {
      same_names = false;
      continue;
    }
    same_shapes = same_shapes && known.signature == seen_in_order_[i].signature;
    seen_in_order_[i].signature = known.signature;
  }
  if (!same_names)
    tell("warning", "order_differs",
         "the order pass saw other operators than the values pass (" +
             std::to_string(seen_in_order_.size()) + " against " +
             std::to_string(seen_in_values_.size()) + ")");
  else if (!same_shapes)
    tell("note", "shapes_differ", "the order pass saw other shapes than the values pass");
}

void Stepper::run(const jd_op& op, void (*execute)(void*), void* context) {
  if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    if (!others_told_.exchange(true))
      tell("warning", "other_thread",
           "operators of threads other than the one that began the step are not recorded");
    return execute(context);
  }
  inside_operator = operator_runs_ = true;
  recorded(op, execute, context);
  inside_operator = operator_runs_ = false;
}

void Stepper::recorded(const jd_op& op, void (*execute)(void*), void* context) {
  const std::uint32_t index = index_++;
  switch (pass()) {
    case JD_VALUES:
      guarded([&] {
        memory().synchronize();
        note(seen_in_values_, op);
        values_->before(op);
      });
      execute(context);
      guarded([&] {
        memory().synchronize();
        values_->after(op);
      });
      return;
    case JD_ORDER:
      if (noting_) guarded([&] { note(seen_in_order_, op); });
      jd_operator_begin(step_, index, op.name);
      execute(context);
      jd_operator_end();
      return;
    case JD_REPLAY:
      guarded([&] { replay_->at(index, op, execute, context); });
      execute(context);
      return;
    default: execute(context);
  }
}

void Stepper::note(std::vector<Described>& seen, const jd_op& op) const {
  seen.push_back({op.name != nullptr ? op.name : "", signature_of(op), (op.flags & JD_ONCE) != 0});
}

// A mistake of ours ends the recording and leaves the program as it is.
template <class Body>
void Stepper::guarded(Body body) noexcept {
  if (off_) return;
  try {
    body();
  } catch (const std::exception& error) {
    off_ = true;
    pass_.store(kNoPass, std::memory_order_relaxed);
    tell("error", "recording_failed",
         std::string("the recorder made a mistake, and records no more in this process: ") +
             error.what());
    jd_flush();
    if (Launcher launcher; launcher.connect()) launcher.done();
  }
}

// What a step that was cut short had made of its values is kept; of the device nothing is asked.
void Stepper::finish() {
  if (off_) return;
  const std::lock_guard lock(mutex_);
  const int open = pass_.exchange(kNoPass);
  if (open == JD_VALUES) tell_step(open);
  const std::string missing = schedule_->missing(open != kNoPass ? open : following_);
  if (entered_ != kNoPass) leave();
  if (!missing.empty())
    tell("warning", "ended_early",
         "the program ended after " + std::to_string(step_) + " steps, before it had made " +
             missing + ": let it run longer, or ask for fewer --steps or --trace-seconds");
  off_ = true;
  jd_flush();
}

void Stepper::forked() noexcept {
  if (!schedule_) return;
  off_ = true;
  pass_.store(kNoPass, std::memory_order_relaxed);
}

namespace {

// Kept so that the registration is made.
const int at_fork = pthread_atfork(nullptr, nullptr, [] { stepper->forked(); });

// Values that an engine counts and does not give are none.
jd_op with_what_is_there(jd_op op) {
  if (op.inputs == nullptr) op.input_count = 0;
  if (op.outputs == nullptr) op.output_count = 0;
  return op;
}

// Nothing that goes wrong in our own code leaves it.
template <class Result, class Body>
Result safely(Result otherwise, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace
}  // namespace joulediff::record

#define JD_EXPORT extern "C" __attribute__((visibility("default")))
using namespace joulediff::record;

JD_EXPORT int jd_recording(void) {
  return safely(0, [] { return stepper->wanted() ? 1 : 0; });
}

JD_EXPORT int jd_step_begin(const char* inputs) {
  return safely(kNoPass, [&] { return stepper->begin(inputs); });
}

JD_EXPORT void jd_step_end(void) {
  safely(0, [] {
    stepper->end();
    return 0;
  });
}

JD_EXPORT int jd_pass(void) {
  return stepper->pass();
}

JD_EXPORT void jd_run(const jd_op* op, void (*execute)(void* context), void* context) {
  if (execute == nullptr) return;
  const int pass = stepper->pass();
  const bool plain = pass == kNoPass || pass == JD_WARMUP || pass == JD_TRACE;
  if (plain || op == nullptr || inside_operator)
    execute(context);
  else
    stepper->run(with_what_is_there(*op), execute, context);
}
