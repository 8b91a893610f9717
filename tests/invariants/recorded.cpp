#include "recorded.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "rules/rules.h"
#include "run/run_file.h"

namespace joulediff::invariants {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(JOULEDIFF_SOURCE_DIR) / "cases";

fs::path path_of(const std::string& id, const std::string& side) {
  return kCases / id / "runs" / (side + ".jd");
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

}  // namespace

std::string name_of(const std::string& id, const std::string& side) {
  return "cases/" + id + "/runs/" + side + ".jd";
}

std::vector<std::string> case_ids() {
  std::vector<std::string> ids;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCases))
    if (fs::exists(entry.path() / "case.toml")) ids.push_back(entry.path().filename().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool recorded(const std::string& id) {
  return fs::exists(path_of(id, "a")) && fs::exists(path_of(id, "b"));
}

const Side& side(const std::string& id, const std::string& side) {
  static std::map<std::string, std::unique_ptr<Side>> known;
  std::unique_ptr<Side>& one = known[name_of(id, side)];
  if (!one) {
    run::Run run = value_of(run::read_run(path_of(id, side).string()));
    attribute::Attribution cost = value_of(attribute::attribute(run));
    one = std::make_unique<Side>(Side{std::move(run), std::move(cost)});
  }
  return *one;
}

Compared compare(const Side& a, const Side& b) {
  Compared compared{match::match(a.run, b.run), {}};
  const rules::Verdict verdict = rules::comparable(a.run, b.run);
  compared.comparison = diagnose::compare({a.run, b.run, a.cost, b.cost, compared.match, verdict});
  return compared;
}

Operators indices(const std::vector<run::OperatorId>& operators) {
  Operators set;
  for (const run::OperatorId op : operators) set.insert(op.index());
  return set;
}

Regions regions_of(const match::Match& match) {
  Regions regions;
  for (const match::Region& region : match.regions)
    regions.emplace(indices(region.a), indices(region.b));
  return regions;
}

}  // namespace joulediff::invariants
