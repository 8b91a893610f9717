// Where does the excess lie? For each name of an operator, as many calls as both sides make are
// compared call by call; the rest are extras of one side. If the calls in common hold most of the
// excess, the question is why the same operator costs more (setting, argument, layout, kernel),
// asked of the name with the largest excess; else it is why there are other operators at all.
#include "diagnose/evidence.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/place.h"

namespace joulediff::diagnose {
namespace {

struct Count {
  std::size_t calls = 0;
  double joules = 0;
  double mean() const { return calls == 0 ? 0 : joules / static_cast<double>(calls); }
};

std::map<std::string, Count> by_name(const Part& part) {
  std::map<std::string, Count> counts;
  for (const run::OperatorId id : part.operators) {
    Count& count = counts[base_name(part.run.operators[id.index()].name)];
    ++count.calls;
    if (id.index() < part.cost.operators.size())
      count.joules += part.cost.operators[id.index()].total.joules.value;
  }
  return counts;
}

void add_extra(std::vector<Extra>& extras, const std::string& name, const Count& count,
               std::size_t common) {
  if (count.calls <= common) return;
  const std::size_t more = count.calls - common;
  extras.push_back({name, more, count.mean() * static_cast<double>(more)});
}

void most_joules_first(std::vector<Extra>& extras) {
  std::sort(extras.begin(), extras.end(), [](const Extra& x, const Extra& y) {
    return x.joules != y.joules ? x.joules > y.joules : x.name < y.name;
  });
}

}  // namespace

std::string base_name(std::string_view op) {
  const std::size_t first = op.find('.');
  const std::size_t second = first == op.npos ? op.npos : op.find('.', first + 1);
  return std::string(op.substr(0, second));
}

std::string_view short_name(std::string_view base) {
  const std::size_t dot = base.find('.');
  return dot == base.npos ? base : base.substr(dot + 1);
}

std::string_view letter(Side side) {
  return side == Side::a ? "A" : "B";
}

std::vector<run::OperatorId> Question::calls(const Part& part, std::string_view name) const {
  std::vector<run::OperatorId> found;
  for (const run::OperatorId id : part.operators)
    if (base_name(part.run.operators[id.index()].name) == name) found.push_back(id);
  return found;
}

Question ask(Part dear, Part cheap) {
  Question question{std::move(dear), std::move(cheap), {}, {}, {}};
  const auto of_dear = by_name(question.dear);
  const auto of_cheap = by_name(question.cheap);
  std::set<std::string> names;
  for (const auto& [name, count] : of_dear) names.insert(name);
  for (const auto& [name, count] : of_cheap) names.insert(name);
  double in_common = 0;
  double in_extras = 0;
  double largest = 0;
  const auto count_of = [](const std::map<std::string, Count>& counts, const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? Count{} : found->second;
  };
  for (const std::string& name : names) {
    const Count d = count_of(of_dear, name);
    const Count c = count_of(of_cheap, name);
    const std::size_t common = std::min(d.calls, c.calls);
    const double excess = (d.mean() - c.mean()) * static_cast<double>(common);
    in_common += excess;
    in_extras += d.joules - c.joules - excess;
    if (excess > largest) {
      largest = excess;
      question.focus = name;
    }
    add_extra(question.extra_dear, name, d, common);
    add_extra(question.extra_cheap, name, c, common);
  }
  const bool same = question.extra_dear.empty() && question.extra_cheap.empty();
  if (!same && in_extras > in_common) question.focus.clear();
  if (same && question.focus.empty() && !names.empty()) question.focus = *names.begin();
  most_joules_first(question.extra_dear);
  most_joules_first(question.extra_cheap);
  return question;
}

std::string list(const std::vector<Extra>& extras) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(extras.size(), kMost); ++i) {
    if (i > 0) text += ", ";
    text += extras[i].name;
    if (extras[i].count > 1) text += " (x" + std::to_string(extras[i].count) + ")";
  }
  if (extras.size() > kMost) text += " and " + std::to_string(extras.size() - kMost) + " more";
  return text;
}

std::string place_of(const Part& part, run::OperatorId op) {
  const Places found = places(part.run, op);
  if (!found.where) return {};
  const std::string& file = found.where->file;
  const std::size_t slash = file.rfind('/');
  return (slash == file.npos ? file : file.substr(slash + 1)) + ":" +
         std::to_string(found.where->line);
}

std::vector<run::Kernel> kernels_of(const run::Run& run, run::OperatorId op) {
  for (const run::Block& block : run.blocks) {
    const run::KernelSeries& series = block.order_kernels;
    std::vector<run::Kernel> found;
    std::optional<std::uint32_t> step;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (series.op[i] != op) continue;
      if (!step) step = series.step[i];
      if (series.step[i] == *step) found.push_back(run.kernels[series.kernel[i].index()]);
    }
    if (!found.empty()) return found;
  }
  return {};
}

std::optional<bool> kernels_differ(const Question& question, std::string_view name) {
  const auto of = [&](const Part& part) {
    std::vector<run::Kernel> kernels;
    for (const run::OperatorId id : question.calls(part, name))
      for (run::Kernel& kernel : kernels_of(part.run, id)) kernels.push_back(std::move(kernel));
    return kernels;
  };
  const std::vector<run::Kernel> dear = of(question.dear);
  const std::vector<run::Kernel> cheap = of(question.cheap);
  if (dear.empty() || cheap.empty()) return std::nullopt;
  return dear != cheap;
}

Answer find_cause(const Question& question) {
  using Seeker = std::optional<Answer> (*)(const Question&);
  const std::vector<Seeker> seekers =
      question.focus.empty()
          ? std::vector<Seeker>{redundant_operators, other_operators}
          : std::vector<Seeker>{redundant_elements, other_setting,  other_dtype,
                                other_layout,       other_argument, redundant_operators,
                                other_operators,    other_kernel};
  for (const Seeker seek : seekers)
    if (std::optional<Answer> answer = seek(question)) return *std::move(answer);
  Cause cause{CauseKind::kernel,
              "kernel:" + std::string(short_name(question.focus)),
              "the same calls cost more, and nothing recorded tells them apart",
              CauseStanding::open,
              std::nullopt,
              std::nullopt};
  return {std::move(cause), "compare the two programs' environments"};
}

}  // namespace joulediff::diagnose
