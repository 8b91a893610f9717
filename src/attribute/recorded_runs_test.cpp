// What must hold of every recorded run of the cases: real boards, real sensors.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "run/run_file.h"

namespace joulediff::attribute {
namespace {

using Lines = std::vector<Line>;

class RecordedRuns : public testing::Test {
 protected:
  // Visits every recorded run; skips where there is none.
  template <class Visit>
  void each(Visit visit) {
    const std::filesystem::path cases = std::filesystem::path(JOULEDIFF_SOURCE_DIR) / "cases";
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cases)) {
      if (entry.path().extension() != ".jd") continue;
      SCOPED_TRACE(entry.path().lexically_relative(cases).string());
      const auto run = run::read_run(entry.path().string());
      ASSERT_TRUE(run) << run.error().message;
      const auto costs = attribute(*run);
      ASSERT_TRUE(costs) << costs.error().message;
      visit(*run, *costs);
      ++seen;
    }
    if (seen == 0) GTEST_SKIP() << "no recorded runs under cases/";
  }
};

double sum(const Ledger& ledger, const Lines& of) {
  double joules = 0;
  for (const Line line : of) joules += ledger.line(line) ? ledger.line(line)->joules.value : 0;
  return joules;
}

void expect_whole(const Ledger& ledger) {
  const double total = ledger.total.joules.value;
  EXPECT_GT(total, 0);
  EXPECT_NEAR(sum(ledger, {Line::operators, Line::static_busy, Line::launch_gap, Line::waiting,
                           Line::idle, Line::overlap, Line::unattributed}),
              total, 1e-9 * total);
  for (std::size_t i = 0; i < kLines; ++i) {
    const auto which = static_cast<Line>(i);
    if (!ledger.line(which)) continue;
    const Energy& line = *ledger.line(which);
    EXPECT_TRUE(std::isfinite(line.joules.value) && std::isfinite(line.low.value) &&
                std::isfinite(line.high.value))
        << name(which);
    EXPECT_LE(line.low, line.joules) << name(which);
    EXPECT_LE(line.joules, line.high) << name(which);
    if (which == Line::overlap || which == Line::unattributed) continue;
    EXPECT_GE(line.low, Joules(0)) << name(which);
  }
}

// Some of their operators were replayed at a clock up to 13 % off that of the trace.
TEST_F(RecordedRuns, BoardsAreAttributedToWithinFourPercent) {
  each([](const run::Run& run, const Attribution& costs) {
    const Ledger& ledger = costs.ledger;
    ASSERT_EQ(ledger.boundary, Boundary::board);
    for (std::size_t i = 0; i < kLines; ++i)
      EXPECT_TRUE(ledger.lines[i]) << name(static_cast<Line>(i)) << " is not known";
    expect_whole(ledger);
    EXPECT_LE(std::abs(sum(ledger, {Line::unattributed})), 0.04 * ledger.total.joules.value);
    EXPECT_GE(costs.recognised, 0.98);
    ASSERT_EQ(costs.operators.size(), run.operators.size());
    double operators = 0;
    for (const OperatorCost& cost : costs.operators)
      if (cost.known) operators += cost.total.joules.value;
    EXPECT_NEAR(sum(ledger, {Line::operators, Line::static_busy}), operators, 1e-9 * operators);
  });
}

TEST_F(RecordedRuns, TheHostIsALedgerBesideTheBoards) {
  each([](const run::Run&, const Attribution& costs) {
    ASSERT_EQ(costs.beside.size(), 1u);
    const Ledger& host = costs.beside.front();
    EXPECT_EQ(host.boundary, Boundary::host);
    EXPECT_EQ(host.total.standing, Standing::modelled);
    EXPECT_FALSE(host.line(Line::operators)) << "their host time in the trace was not recorded";
    expect_whole(host);
  });
}

}  // namespace
}  // namespace joulediff::attribute
