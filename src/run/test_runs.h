// Runs for tests: valid ones of any shape from a seed, so that a property can be tried on many.
// For tests only; nothing in a room's library includes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "run/model.h"
#include "run/names.h"

namespace joulediff::run {

class RandomRun {
 public:
  // A valid run (validate accepts it) of about `size` records of each kind; the same for the same
  // arguments. It has odd values on purpose: extremes, NaN in samples, ids that are none, lists
  // that are empty, text that is not ASCII.
  static Run make(std::uint64_t seed, std::size_t size) { return RandomRun(seed, size).run_; }

 private:
  RandomRun(std::uint64_t seed, std::size_t size) : random_(seed), size_(size) {
    manifest();
    names();
    tensors();
    operators();
    for (std::uint64_t i = below(3); i > 0; --i) {
      run_.devices.push_back({"GPU-" + std::to_string(i), text("device")});
      run_.inputs.push_back({"float32[" + std::to_string(i) + "]"});
    }
    for (std::uint64_t b = below(3); b > 0; --b) block();
    for (std::uint64_t i = upto(); i > 0; --i) {
      run_.diagnostics.push_back(
          {coded<Severity>(), text("rule"), text("message"), below(1000) + 1, text("remedy")});
    }
  }

  std::uint64_t bits() { return random_(); }
  std::uint64_t below(std::uint64_t n) { return bits() % n; }
  std::uint64_t upto() { return below(size_ + 1); }
  bool often() { return below(4) != 0; }
  std::uint32_t number() { return static_cast<std::uint32_t>(often() ? below(100) : bits()); }
  template <class E>
  E coded() {
    return static_cast<E>(below(kNames<E>.size()));
  }
  template <class I>
  I id(std::size_t count) {
    return count > 0 && often() ? I(static_cast<std::size_t>(below(count))) : I();
  }
  double real() {
    switch (below(5)) {
      case 0: return 0;
      case 1: return std::numeric_limits<double>::infinity();
      case 2: return -1e300;
      default: return static_cast<double>(static_cast<std::int64_t>(bits())) * 1e-12;
    }
  }
  std::string text(const std::string& stem) {
    static constexpr const char* kTails[] = {"", "µ…", "\"quoted'\\", "\n\t", "x", "%s"};
    return stem + std::to_string(below(1000)) + kTails[below(std::size(kTails))];
  }

  void manifest() {
    Manifest& m = run_.manifest;
    m = {text("label"),
         text("cmd"),
         text("device"),
         text("uuid"),
         "torch 2.11.0+cu130",
         {},
         "",
         "",
         {}};
    m.work = {text("token"), static_cast<double>(below(1000) + 1) / 8};
    if (often()) m.pair = text("pair"), m.side = "a";
    for (std::uint64_t i = upto(); i > 0; --i) m.facts[text("fact")] = text("value");
    for (std::uint64_t i = upto(); i > 0; --i)
      run_.settings.push_back({text("key"), text("value")});
    std::sort(run_.settings.begin(), run_.settings.end(),
              [](const Setting& a, const Setting& b) { return a.key < b.key; });
    const auto twice =
        std::unique(run_.settings.begin(), run_.settings.end(),
                    [](const Setting& a, const Setting& b) { return a.key == b.key; });
    run_.settings.erase(twice, run_.settings.end());
  }

  void names() {
    for (std::uint64_t i = upto(); i > 0; --i) {
      run_.frames.push_back({text("/file"), number(), text("f")});
    }
    for (std::uint64_t i = run_.frames.empty() ? 0 : upto(); i > 0; --i) {
      const auto caller = id<StackId>(run_.stacks.size());
      run_.stacks.push_back({caller, FrameId(static_cast<std::size_t>(below(run_.frames.size())))});
    }
    for (std::uint64_t i = upto(); i > 0; --i) {
      run_.signatures.push_back({std::to_string(i) + text("signature")});
    }
    for (std::uint64_t i = upto(); i > 0; --i) {
      run_.kernels.push_back({std::to_string(i) + text("kernel"),
                              {number(), number(), number()},
                              {number(), 1, 1},
                              coded<KernelKind>()});
    }
  }

  void tensors() {
    for (std::uint64_t i = upto(); i > 0; --i) {
      Tensor t;
      t.storage = i;
      t.version = often() ? below(3) : bits();
      t.offset = static_cast<std::int64_t>(below(100));
      t.role = coded<Role>();
      std::int64_t elements = 1;
      for (std::uint64_t d = below(4); d > 0; --d) {
        t.shape.push_back(static_cast<std::int64_t>(below(40)));
        t.stride.push_back(static_cast<std::int64_t>(below(3)));
        elements *= t.shape.back();
      }
      fingerprint(t.fingerprint, static_cast<std::uint64_t>(elements));
      if (often()) sample(t);
      run_.tensors.push_back(std::move(t));
    }
  }
  void fingerprint(value::Fingerprint& f, std::uint64_t count) {
    f.dtype = coded<value::DType>();
    f.count = count;
    f.nan = below(count + 1);
    f.positive_infinity = below(count - f.nan + 1);
    f.mean = real(), f.mean_abs = real(), f.rms = real(), f.l4 = real(), f.m3 = real();
    f.min = real(), f.max = real();
    for (value::Lanes* lanes : {&f.own, &f.bf16, &f.fp16}) *lanes = {number(), number()};
    f.distinct = static_cast<std::uint8_t>(below(4));
  }
  void sample(Tensor& t) {
    std::vector<std::int64_t> shape;
    for (std::size_t i = 0; i < t.shape.size(); ++i) {
      if (t.shape[i] != 1 && t.stride[i] != 0) shape.push_back(t.shape[i]);
    }
    if (value::class_of(t.fingerprint.dtype) == value::DTypeClass::complex) shape.push_back(2);
    std::size_t size = 1;
    for (const auto& axis : value::sample_grid(shape)) size *= axis.size();
    for (; size > 0; --size) {
      static constexpr float kOdd[] = {0, -0.0f, std::numeric_limits<float>::quiet_NaN(),
                                       -std::numeric_limits<float>::infinity(), 1e-45f};
      const auto value = static_cast<float>(static_cast<std::int32_t>(number()));
      t.sample.push_back(often() ? value / 7 : kOdd[below(std::size(kOdd))]);
    }
  }

  // Each tensor is made by at most one operator, and read only after that one.
  void operators() {
    const std::size_t count = size_ / 2 + 1;
    std::vector<std::size_t> producer;
    for (std::size_t t = 0; t < run_.tensors.size(); ++t) producer.push_back(below(count + 2));
    for (std::size_t i = 0; i < count; ++i) {
      Operator op;
      op.name = text("aten.op");
      for (std::size_t t = 0; t < producer.size(); ++t) {
        if (producer[t] == i) op.outputs.emplace_back(t);
        if (const bool made = producer[t] < i || producer[t] >= count; made && below(8) == 0) {
          op.inputs.emplace_back(t);
        }
      }
      op.signature = id<SignatureId>(run_.signatures.size());
      op.stack = id<StackId>(run_.stacks.size());
      op.forward = id<OperatorId>(i);
      op.phase = coded<Phase>();
      op.view = !often();
      op.module = text("module");
      op.arguments = often() ? "[1,2.5,null]" : "";
      run_.operators.push_back(std::move(op));
    }
  }

  Nanoseconds later(Nanoseconds t) {
    return t + static_cast<Nanoseconds>(below(often() ? 5000 : std::uint64_t{1} << 40));
  }
  void kernels(KernelSeries& series, bool with_operators) {
    Nanoseconds now = begin_;
    for (std::uint64_t i = run_.kernels.empty() ? 0 : upto() * 4; i > 0; --i) {
      series.kernel.emplace_back(static_cast<std::size_t>(below(run_.kernels.size())));
      series.start.push_back(now = later(now));
      series.duration.push_back(later(0));
      series.stream.push_back(number());
      series.op.push_back(with_operators ? id<OperatorId>(run_.operators.size()) : OperatorId());
      series.step.push_back(with_operators ? number() : 0);
    }
    const auto some = [&]<class I>(std::vector<I>& ids, std::size_t count) {
      for (std::size_t i = 0; i < series.size(); ++i) ids.push_back(id<I>(count));
      const bool known = std::any_of(ids.begin(), ids.end(), [](I one) { return one.valid(); });
      if (!known) ids.clear();
    };
    some(series.device, run_.devices.size());
    if (with_operators) some(series.stack, run_.stacks.size());
  }
  void block() {
    const bool rank = !run_.blocks.empty() && !often();  // one more of the launch before
    if (!rank) order_ += 1 + static_cast<std::uint32_t>(below(3));
    Block& b = run_.blocks.emplace_back();
    begin_ = static_cast<Nanoseconds>(below(std::uint64_t{1} << 50));
    b.order = order_;
    b.rank = number();
    if (rank)
      b.host = run_.blocks[run_.blocks.size() - 2].host;
    else if (!often())
      b.host = text("host");
    b.pid = number();
    b.begin = begin_;
    b.end = later(begin_);
    b.exit_status = static_cast<std::int32_t>(number());
    b.dropped_kernels = often() ? 0 : bits();
    for (std::uint64_t i = upto(); i > 0; --i) {
      const Nanoseconds from = later(begin_);
      const auto inputs = id<InputsId>(run_.inputs.size());
      b.steps.push_back({coded<Pass>(), number(), from, later(from), inputs});
    }
    kernels(b.order_kernels, true);
    kernels(b.trace_kernels, false);
    for (std::uint64_t i = upto(); i > 0; --i) {
      b.operator_times.op.emplace_back(static_cast<std::size_t>(below(run_.operators.size())));
      b.operator_times.step.push_back(number());
      b.operator_times.begin.push_back(later(begin_));
      b.operator_times.end.push_back(later(b.operator_times.begin.back()));
    }
    for (std::uint64_t i = upto(); i > 0; --i) {
      Replay r{coded<ReplayKind>(), {}, later(begin_), 0, below(1000) + 1};
      r.end = later(r.begin);
      if (run_.signatures.empty() && is_of_operator(r.kind)) r.kind = ReplayKind::idle;
      if (is_of_operator(r.kind)) {
        r.signature = SignatureId(static_cast<std::size_t>(below(run_.signatures.size())));
      }
      b.replays.push_back(r);
    }
    waits(b.synchronisations);
    if (!rank)
      for (std::uint64_t i = below(4); i > 0; --i) sensor(b.series.emplace_back());
  }
  void waits(Synchronisations& waits) {
    Nanoseconds now = begin_;
    for (std::uint64_t i = upto(); i > 0; --i) {
      waits.kind.push_back(coded<SynchronisationKind>());
      waits.start.push_back(now = later(now));
      waits.duration.push_back(later(0));
      waits.stream.push_back(number());
    }
  }
  void sensor(Series& series) {
    series.source = coded<Source>();
    if (often()) series.channel = text("channel");
    const bool uncertain = often();
    Nanoseconds now = begin_;
    std::int64_t value = 0;
    for (std::uint64_t i = upto() * 4; i > 0; --i) {
      series.time.push_back(now = later(now));
      series.value.push_back(value += static_cast<std::int64_t>(below(1000)));
      if (uncertain) series.uncertainty.push_back(later(0));
    }
  }

  std::mt19937_64 random_;
  std::size_t size_;
  Nanoseconds begin_ = 0;
  std::uint32_t order_ = 0;
  Run run_;
};

}  // namespace joulediff::run
