#include "report/mlperf_population.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace joulediff::report {
namespace {

constexpr std::array kHardware{"accelerator_model_name",
                               "accelerators_per_node",
                               "number_of_nodes",
                               "host_processor_model_name",
                               "host_processors_per_node",
                               "host_memory_capacity",
                               "accelerator_memory_capacity",
                               "cooling"};
constexpr std::array kSoftware{"framework", "other_software_stack", "operating_system"};

std::string task_of(const MlperfEntry& entry) {
  const run::Submission& s = entry.submission;
  // Of work that is not known nobody can say that it is another's.
  const std::string task = s.benchmark.empty() ? "unknown, " + short_name(entry) : s.benchmark;
  return task + (s.scenario.empty() ? "" : " " + s.scenario);
}

std::map<std::string, std::string> fields(const MlperfEntry& entry,
                                          std::span<const char* const> names) {
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : entry.submission.description)
    for (const std::string_view name : names)
      if ((key == name || key.starts_with(std::string(name) + ".")) && !value.empty())
        result[key] = value;
  return result;
}

std::string differing(const std::map<std::string, std::string>& a,
                      const std::map<std::string, std::string>& b) {
  std::string text;
  std::size_t n = 0;
  const auto add = [&](const std::string& key, const std::string& x, const std::string& y) {
    if (++n <= 2) text += fmt::format("{}{}: {} -> {}", text.empty() ? "" : "; ", key, x, y);
  };
  for (const auto& [key, value] : a) {
    const auto found = b.find(key);
    if (found == b.end())
      add(key, value, "unknown");
    else if (found->second != value)
      add(key, value, found->second);
  }
  for (const auto& [key, value] : b)
    if (!a.contains(key)) add(key, "unknown", value);
  if (n > 2) text += fmt::format("; and {} more", n - 2);
  return text;
}

// "bert" and "99.9" of "bert-99.9"; an empty level where the task has none.
std::pair<std::string, std::string> level(const std::string& benchmark) {
  for (const char* suffix : {"-99.9", "-99"})
    if (benchmark.ends_with(suffix)) {
      const std::string name = suffix;
      return {benchmark.substr(0, benchmark.size() - name.size()), name.substr(1)};
    }
  return {benchmark, ""};
}

}  // namespace

std::string short_name(const MlperfEntry& entry) {
  const std::string& path = entry.submission.path;
  std::string rest = path;
  while (rest.ends_with('/')) rest.pop_back();
  if (rest.ends_with("/performance")) rest.resize(rest.size() - 12);
  // Within a results tree the last parts tell; a copied submission has all in its own name.
  std::size_t at = rest.size();
  for (int parts = 0; parts < 3 && at != std::string::npos; ++parts) {
    at = at == 0 ? std::string::npos : rest.rfind('/', at - 1);
    if (at != std::string::npos && rest.size() - at > 24) break;
  }
  return at == std::string::npos ? rest : rest.substr(at + 1);
}

std::string table_name(const MlperfEntry& entry) {
  const run::Submission& s = entry.submission;
  if (s.benchmark.empty() || s.system.empty()) return short_name(entry);
  return fmt::format("{} {}{}", s.system, s.benchmark, s.scenario.empty() ? "" : " " + s.scenario);
}

std::vector<TaskRow> by_task(const MlperfPage& page) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> tasks;
  for (const MlperfEntry& entry : page.entries)
    if (const auto joules = entry.judgement.score.joules_per_unit())
      tasks[{task_of(entry), entry.judgement.score.unit}].push_back(*joules);
  std::vector<TaskRow> rows;
  for (auto& [task, values] : tasks) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    rows.push_back({task.first, task.second, values.size(), values.front(), median, values.back()});
  }
  return rows;
}

std::vector<QualityRow> cost_of_quality(const MlperfPage& page) {
  using Key = std::array<std::string, 5>;
  std::map<Key, std::array<const MlperfEntry*, 2>> pairs;
  for (const MlperfEntry& entry : page.entries) {
    const run::Submission& s = entry.submission;
    const auto [name, quality] = level(s.benchmark);
    if (quality.empty() || !entry.judgement.score.joules_per_unit()) continue;
    pairs[{s.submitter, s.system, s.round, name, s.scenario}][quality == "99" ? 0 : 1] = &entry;
  }
  std::vector<QualityRow> rows;
  for (const auto& [key, pair] : pairs) {
    if (pair[0] == nullptr || pair[1] == nullptr) continue;
    const std::string& hash = pair[0]->judgement.point.scenario.log_hash;
    rows.push_back(
        {pair[0], pair[1],
         *pair[0]->judgement.score.joules_per_unit() / *pair[1]->judgement.score.joules_per_unit(),
         !hash.empty() && hash == pair[1]->judgement.point.scenario.log_hash});
  }
  return rows;
}

std::vector<ChangeRow> changes(const MlperfPage& page) {
  std::map<std::string, std::vector<const MlperfEntry*>> tasks;
  for (const MlperfEntry& entry : page.entries)
    if (entry.judgement.score.joules_per_unit() && !entry.submission.description.empty())
      tasks[task_of(entry) + " " + entry.judgement.score.unit].push_back(&entry);
  std::vector<ChangeRow> rows;
  for (const auto& [task, entries] : tasks)
    for (std::size_t i = 0; i < entries.size(); ++i)
      for (std::size_t k = i + 1; k < entries.size(); ++k) {
        const MlperfEntry &a = *entries[i], &b = *entries[k];
        const std::string hardware = differing(fields(a, kHardware), fields(b, kHardware)),
                          software = differing(fields(a, kSoftware), fields(b, kSoftware));
        const std::string &here = a.judgement.point.boundary.kind,
                          &there = b.judgement.point.boundary.kind;
        if ((!hardware.empty() && !software.empty()) || here != there) continue;
        ChangeRow row{&a, &b, "neither", {}, 0};
        if (!hardware.empty()) row.what = "hardware";
        if (!software.empty()) row.what = "software";
        row.detail = hardware + software;
        if (here.empty())
          row.detail += fmt::format("{}neither says at which boundary it was measured",
                                    row.detail.empty() ? "" : "; ");
        const double x = *a.judgement.score.joules_per_unit(),
                     y = *b.judgement.score.joules_per_unit();
        row.change = (y - x) / std::max(x, y);
        rows.push_back(std::move(row));
      }
  return rows;
}

namespace {

constexpr double kDaemonLimit = 0.01;  // PTDaemon warns of each reading that is less certain

bool passes(const MlperfEntry& entry, std::string_view id) {
  const auto found = std::ranges::find(entry.judgement.checks, id, &rules::MlperfCheck::id);
  return found != entry.judgement.checks.end() && found->ours == rules::Checked::passed;
}

run::Point curve_point(const MlperfEntry& entry) {
  run::Point p = entry.judgement.point;
  const rules::Score& score = entry.judgement.score;
  p.label = table_name(entry);
  if (score.joules()) {  // as in all tables; of training the official figure is of the whole log
    p.energy.joules = score.joules()->value;
    p.window.scored = "window";
  }
  if (p.quality.value) p.work.model = level(entry.submission.benchmark).first;
  if (p.repeats.seconds.empty() && score.rate && *score.rate > 0)
    p.repeats.seconds = {1 / *score.rate};
  if (!p.meter.uncertainty && passes(entry, "mlperf.uncertainty_on") &&
      passes(entry, "mlperf.uncertainty"))
    p.meter.uncertainty = kDaemonLimit;
  return p;
}

// Groups of `some` of all points; what has no energy, and so stands last, left out.
void place(FrontierPage& page, const std::vector<std::size_t>& some) {
  std::vector<run::Point> points;
  points.reserve(some.size());
  for (const std::size_t i : some) points.push_back(page.points[i]);
  auto found = frontier::frontier(points, page.question);
  if (!found) return;
  for (frontier::Group& group : found->groups) {
    while (!group.entries.empty() && !group.entries.back().at(frontier::Axis::energy))
      group.entries.pop_back();
    if (group.entries.size() < 2) continue;
    for (frontier::Entry& entry : group.entries) entry.point = some[entry.point];
    page.frontier.groups.push_back(std::move(group));
  }
}

}  // namespace

FrontierPage curves(const MlperfPage& page) {
  FrontierPage result;
  result.question.despite = {"DI2", "Q1", "EN2"};  // repeats are by the official rule
  result.top = page.top;
  // The grammar tells these apart anyway; it need not be asked of every two of a whole round.
  std::map<std::array<std::string, 4>, std::vector<std::size_t>> tasks;
  for (const MlperfEntry& entry : page.entries) {
    const run::Point& p = result.points.emplace_back(curve_point(entry));
    if (p.work.model.empty()) continue;
    tasks[{p.work.model, p.work.unit, p.scenario.arrival, p.boundary.kind}].push_back(
        result.points.size() - 1);
  }
  for (const auto& [task, members] : tasks)
    if (members.size() > 1) place(result, members);
  return result;
}

std::vector<CheckRow> by_check(const MlperfPage& page) {
  std::vector<CheckRow> rows;
  for (const MlperfEntry& entry : page.entries)
    for (const rules::MlperfCheck& check : entry.judgement.checks) {
      auto row = std::ranges::find(rows, check.id, &CheckRow::id);
      if (row == rows.end()) {
        rows.push_back({check.id, {}, {}, {}});
        row = rows.end() - 1;
      }
      ++row->official[static_cast<std::size_t>(check.official)];
      ++row->ours[static_cast<std::size_t>(check.ours)];
      if (check.official == check.ours || check.why.empty()) continue;
      if (std::ranges::find(row->why, check.why) == row->why.end()) row->why.push_back(check.why);
    }
  return rows;
}

}  // namespace joulediff::report
