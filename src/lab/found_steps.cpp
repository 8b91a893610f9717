#include "lab/found_steps.h"

#include <algorithm>
#include <joulediff/record.h>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attribute/period.h"

namespace joulediff::lab {
namespace {

constexpr std::size_t kOrderSteps = 3;         // of each form
constexpr double kLowestFit = 0.8;             // of a period that is the program's step
constexpr std::size_t kOrderKernels = 20'000;  // where nothing repeats

class FoundSteps {
 public:
  explicit FoundSteps(const SpoolContents& spool) : spool_(spool) {
    std::erase_if(spool_.kernels, [](const spool::Kernel& kernel) {
      return kernel.end_ns < kernel.start_ns ||
             (kernel.pass != JD_ORDER && kernel.pass != JD_TRACE);
    });
    std::ranges::stable_sort(spool_.kernels, {}, &spool::Kernel::start_ns);
    number_launches();
    std::vector<std::uint32_t> names;
    std::vector<Nanoseconds> pauses;
    std::uint64_t end = kernels().empty() ? 0 : kernels().front().start_ns;
    for (const spool::Kernel& kernel : kernels()) {
      names.push_back(kernel.name);
      pauses.push_back(kernel.start_ns > end ? static_cast<Nanoseconds>(kernel.start_ns - end) : 0);
      end = std::max(end, kernel.end_ns);
    }
    period_ = attribute::find_period(names, pauses);
    if (period_ && period_->fit < kLowestFit) period_.reset();
  }

  SpoolContents take() {
    if (period_)
      take_period();
    else
      take_whole();
    return std::move(spool_);
  }

 private:
  std::vector<spool::Kernel>& kernels() { return spool_.kernels; }

  // One number for each kernel: those of a graph's launch share theirs, and are operators each.
  void number_launches() {
    std::map<std::uint32_t, std::uint32_t> stacks;
    for (const spool::LaunchStack& launch : spool_.launch_stacks)
      stacks[launch.correlation] = launch.stack;
    spool_.launch_stacks.clear();
    for (std::uint32_t i = 0; i < kernels().size(); ++i) {
      const auto stack = stacks.find(kernels()[i].correlation);
      kernels()[i].correlation = i + 1;
      if (stack != stacks.end()) spool_.launch_stacks.push_back({i + 1, stack->second});
    }
  }

  void take_period() {
    std::vector<std::uint32_t> first_operator;
    for (const attribute::Form& form : period_->forms) {
      first_operator.push_back(operators_);
      for (std::size_t i = 0; i < form.length; ++i) add_operator(kernels()[form.begin + i]);
    }
    choose_order_steps();
    std::uint32_t index = 0;
    for (const auto& [begin, form] : order_) {
      add_step(JD_ORDER, index, begin, begin + period_->forms[form].length);
      for (std::size_t i = 0; i < period_->forms[form].length; ++i)
        charge(kernels()[begin + i], index, first_operator[form] + static_cast<std::uint32_t>(i));
      ++index;
    }
    const std::size_t order_end =
        order_.empty() ? 0
                       : order_.rbegin()->first + period_->forms[order_.rbegin()->second].length;
    const std::vector<std::size_t>& begins = period_->boundaries;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i)
      if (begins[i] >= order_end && kernels()[begins[i]].pass == JD_TRACE)
        add_step(JD_TRACE, index++, begins[i], begins[i + 1]);
    for (std::size_t i = 0; i < kernels().size(); ++i)
      if (kernels()[i].pass == JD_ORDER && !charged_.contains(i)) kernels()[i].pass = JD_WARMUP;
    tell("note", fmt::format("the steps are the period found in the stream of kernels: {} kernels, "
                             "and {:.1f} % of all lie as in it",
                             period_->length, 100 * period_->fit));
  }

  // A few steps of each form, exactly as it is: those of the recorder's order stretch, else the
  // first of the trace.
  void choose_order_steps() {
    std::vector<std::size_t> taken(period_->forms.size());
    for (const std::uint32_t pass : {JD_ORDER, JD_TRACE}) {
      const std::vector<std::size_t> missing = taken;
      const std::vector<std::size_t>& begins = period_->boundaries;
      for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
        const auto form = form_of(begins[i], begins[i + 1]);
        const std::size_t last = begins[i + 1] - 1;
        if (!form || kernels()[begins[i]].pass != pass || kernels()[last].pass != pass) continue;
        if (missing[*form] > 0 || taken[*form] >= kOrderSteps) continue;
        ++taken[*form];
        order_[begins[i]] = *form;
      }
    }
  }

  std::optional<std::size_t> form_of(std::size_t begin, std::size_t end) {
    const auto same = [this](std::size_t a, std::size_t b) {
      return kernels()[a].name == kernels()[b].name;
    };
    for (std::size_t f = 0; f < period_->forms.size(); ++f) {
      const attribute::Form& form = period_->forms[f];
      if (end - begin != form.length) continue;
      std::size_t i = 0;
      while (i < form.length && same(begin + i, form.begin + i)) ++i;
      if (i == form.length) return f;
    }
    return std::nullopt;
  }

  void take_whole() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
        distinct;
    const std::size_t order_end = std::min(kOrderKernels, kernels().size());
    for (std::size_t i = 0; i < order_end; ++i) {
      const spool::Kernel& k = kernels()[i];
      const auto [known, fresh] =
          distinct.try_emplace({k.name, k.grid[0], k.grid[1], k.grid[2]}, operators_);
      if (fresh) add_operator(k);
      spool::Kernel twin = k;  // the whole is the trace, and what is known of it
      twin.correlation = static_cast<std::uint32_t>(kernels().size() + i + 1);
      twin.pass = JD_ORDER;
      spool_.correlations.push_back({twin.correlation, 0, known->second, 0});
      twins_.push_back(twin);
    }
    add_step(JD_ORDER, 0, 0, order_end);
    add_step(JD_TRACE, 1, 0, kernels().size());
    for (spool::Kernel& kernel : kernels()) kernel.pass = JD_TRACE;
    kernels().insert(kernels().end(), twins_.begin(), twins_.end());
    tell("warning",
         "the program's kernels do not repeat, so that all of them are one step: name a step with "
         "--region, or mark it through joulediff/record.h");
  }

  void add_operator(const spool::Kernel& kernel) {
    const auto named = spool_.kernel_names.find(kernel.name);
    const std::string name =
        "kernel." + (named != spool_.kernel_names.end() ? named->second : std::string("?"));
    const std::string signature =
        fmt::format("{}<<<{},{},{}; {},{},{}>>>", name, kernel.grid[0], kernel.grid[1],
                    kernel.grid[2], kernel.block[0], kernel.block[1], kernel.block[2]);
    spool_.operators.push_back({operators_,
                                name,
                                {},
                                {},
                                nlohmann::json{{"signature", signature}}.dump(
                                    -1, ' ', false, nlohmann::json::error_handler_t::replace)});
    spool_.operator_names.push_back({0, operators_, name});
    ++operators_;
  }

  void charge(const spool::Kernel& kernel, std::uint32_t step, std::uint32_t op) {
    spool_.correlations.push_back({kernel.correlation, step, op, 0});
    charged_.insert(kernel.correlation - 1);
    kernels()[kernel.correlation - 1].pass = JD_ORDER;
  }

  // From the start of a kernel to that of the one after the last.
  void add_step(std::uint32_t pass, std::uint32_t index, std::size_t begin, std::size_t end) {
    const std::uint64_t end_ns =
        end < kernels().size() ? kernels()[end].start_ns : kernels().back().end_ns;
    spool_.steps.push_back({pass, index, kernels()[begin].start_ns, end_ns, 0, 0});
  }

  void tell(const char* severity, std::string message) {
    spool_.facts.push_back({"diagnostic", nlohmann::json{{"severity", severity},
                                                         {"rule", "record.found_steps"},
                                                         {"message", std::move(message)}}
                                              .dump()});
  }

  SpoolContents spool_;
  std::optional<attribute::Period> period_;
  std::map<std::size_t, std::size_t> order_;  // first kernel of a step -> its form
  std::set<std::size_t> charged_;             // kernels of the order pass
  std::vector<spool::Kernel> twins_;
  std::uint32_t operators_ = 0;
};

}  // namespace

std::optional<SpoolContents> with_found_steps(const SpoolContents& spool) {
  const bool traced = std::ranges::any_of(
      spool.kernels, [](const spool::Kernel& kernel) { return kernel.pass == JD_TRACE; });
  if (!spool.steps.empty() || !traced) return std::nullopt;
  return FoundSteps(spool).take();
}

}  // namespace joulediff::lab
