// Whatever a file of points says, the pages of them are text within 100 columns, and JSON.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "report/boundaries.h"
#include "report/frontier.h"

namespace joulediff::report {
namespace {

using run::Point;

std::string word() {
  return *rc::gen::elementOf(std::vector<std::string>{
      "", "token", "image", "accuracy", "perplexity", "board", "rack", "facility", "node-ac",
      "measured", "offline", "naïve ±ü", "a\nb", "fixed", std::string(150, 'w')});
}

// Sets some of the facts, to what a file may hold.
struct Filler {
  void operator()(const char*, const char*, std::string& fact) const {
    if (*rc::gen::inRange(0, 3) == 0) fact = word();
  }
  void operator()(const char*, const char*, run::Fact& fact) const {
    if (*rc::gen::inRange(0, 3) == 0)
      fact = *rc::gen::elementOf(
          std::vector<double>{0, 1e-300, 5e-324, 0.003, 0.99, 1, 7, 600, 1e9, 1e17, 1e300});
  }
  void operator()(const char*, const char*, run::Flag& fact) const {
    if (*rc::gen::inRange(0, 4) == 0) fact = *rc::gen::arbitrary<bool>();
  }
  void operator()(const char*, const char*, std::vector<std::string>& fact) const {
    if (*rc::gen::inRange(0, 4) == 0) fact = {word(), word()};
  }
  void operator()(const char*, const char*, std::vector<double>& fact) const {
    if (*rc::gen::inRange(0, 3) == 0)
      fact = *rc::gen::container<std::vector<double>>(
          rc::gen::elementOf(std::vector<double>{5e-324, 0.5, 0.501, 1e300}));
  }
};

std::vector<Point> some_points(int most) {
  std::vector<Point> points(static_cast<std::size_t>(*rc::gen::inRange(1, most + 1)));
  for (Point& p : points) {
    run::facts(Filler(), p);
    p.label = word();
    // Else hardly any would be placed.
    p.energy.joules = *rc::gen::elementOf(std::vector<double>{0, 300, 310, 900, 1e300});
    p.work.count = *rc::gen::elementOf(std::vector<double>{100, 1e-10});
  }
  return points;
}

// Every line fits, and nothing in it moves a terminal's cursor.
bool fits(const std::string& text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return false;
    const std::string line = text.substr(begin, end - begin);
    if (width_of(line) > 100 || printable(line) != line) return false;
    begin = end + 1;
  }
  return true;
}

RC_GTEST_PROP(Pages, OfCurves, ()) {
  FrontierPage page;
  page.points = some_points(8);
  page.question.directions = {{word(), frontier::Better::lower}};
  page.question.despite = {"WU2", "Q1", "SC2", "TW4", "TW1", "SA3", "ME1", "BO5", "DI2", "ME5"};
  if (*rc::gen::arbitrary<bool>()) page.question.by = {frontier::Axis::energy};
  if (*rc::gen::inRange(0, 4) == 0) page.question.latency_at_most = 1;
  const auto made = frontier::frontier(page.points, page.question);
  if (!made) {
    RC_ASSERT(made.error().message.find('\n') == std::string::npos);
    return;
  }
  page.frontier = *made;
  RC_ASSERT(fits(text(page)));
  RC_ASSERT(nlohmann::json::parse(json(page))["schema"] == "joulediff.frontier/1");
}

RC_GTEST_PROP(Pages, OfBoundaries, ()) {
  BoundariesPage page;
  const std::vector<std::string> places{"board", "node-ac", "rack", "facility"};
  for (auto* side : {&page.a, &page.b}) {
    *side = some_points(4);
    for (std::size_t i = 0; i < side->size(); ++i) (*side)[i].boundary.kind = places[i];
  }
  auto made = rules::boundaries(page.a, page.b);
  RC_ASSERT(made.has_value());
  for (const rules::BoundaryObjection& one : made->objections)
    if (one.what.severity == Severity::error) page.despite.push_back(one.what.rule);
  if (*rc::gen::arbitrary<bool>() && !page.despite.empty()) {
    std::ranges::sort(page.despite);
    page.despite.erase(std::unique(page.despite.begin(), page.despite.end()), page.despite.end());
    made = rules::boundaries(page.a, page.b, page.despite);
    RC_ASSERT(made.has_value() && !made->refused);
  }
  page.table = *made;
  RC_ASSERT(fits(text(page)));
  RC_ASSERT(nlohmann::json::parse(json(page))["schema"] == "joulediff.boundaries/1");
}

}  // namespace
}  // namespace joulediff::report
