// What must hold for every recorded pair, whatever it shows: a run differs from itself in nothing;
// the two sides are alike; numbers, names and the order of independent operators carry no meaning.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "disguise.h"
#include "recorded.h"
#include "run/run_file.h"

namespace joulediff::invariants {
namespace {

class Recorded : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { JD_NEEDS(GetParam()); }
  const Side& a() const { return side(GetParam(), "a"); }
  const Side& b() const { return side(GetParam(), "b"); }
};

// Operators whose results follow from an input of the step; the others compute constants, which
// never match.
std::vector<bool> fed(const run::Run& run) {
  std::vector<bool> tensor(run.tensors.size()), result(run.operators.size());
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = run.tensors[i].role == run::Role::input;
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const run::TensorId in : run.operators[i].inputs)
      result[i] = result[i] || tensor[in.index()];
    for (const run::TensorId out : run.operators[i].outputs)
      tensor[out.index()] = tensor[out.index()] || result[i];
  }
  return result;
}

void expect_equal_to_itself(const Side& side, const std::string& name) {
  const Compared self = compare(side, side);
  EXPECT_TRUE(self.comparison.findings.empty()) << name;
  EXPECT_FALSE(self.match.regions.empty()) << name;
  for (const match::Region& region : self.match.regions) {
    EXPECT_EQ(region.a, region.b) << name;
    EXPECT_TRUE(region.outputs_agree) << name;
    EXPECT_FALSE(region.inputs_differ) << name;
  }
  EXPECT_EQ(self.match.unmatched_a, self.match.unmatched_b) << name;
  const std::vector<bool> matters = fed(side.run);
  for (const run::OperatorId id : self.match.unmatched_a) {
    const run::Operator& op = side.run.operators[id.index()];
    // A view of all of its input, in the same geometry, has no result of its own to match.
    if (op.outputs.empty()) continue;
    EXPECT_FALSE(matters[id.index()])
        << name << ": operator " << id.index() << " (" << op.name << ") is unmatched";
  }
  for (const diagnose::RegionResult& region : self.comparison.regions) {
    EXPECT_NEAR(region.difference.value, 0, 1e-12) << name;
    EXPECT_LE(region.difference.low, 0) << name;
    EXPECT_GE(region.difference.high, 0) << name;
  }
}

TEST_P(Recorded, DiffersFromItselfInNothing) {
  expect_equal_to_itself(a(), name_of(GetParam(), "a"));
  expect_equal_to_itself(b(), name_of(GetParam(), "b"));
}

Regions mirrored(const Regions& regions) {
  Regions turned;
  for (const auto& [of_a, of_b] : regions) turned.emplace(of_b, of_a);
  return turned;
}

// What a finding says, without its words.
struct Said {
  diagnose::Side side;
  diagnose::Outcome outcome;
  diagnose::CauseKind kind;
  std::string key;
  diagnose::CauseStanding standing;
  std::set<std::pair<Operators, Operators>> regions;
  bool operator==(const Said&) const = default;
};

Said said(const diagnose::Comparison& comparison, const diagnose::Finding& finding, bool turn) {
  using enum diagnose::Side;
  Said one{turn ? (finding.side == a ? b : a) : finding.side,
           finding.outcome,
           finding.cause.kind,
           finding.cause.key,
           finding.cause.standing,
           {}};
  for (const std::size_t i : finding.regions) {
    const diagnose::RegionResult& region = comparison.regions[i];
    Operators of_a = indices(region.a.operators), of_b = indices(region.b.operators);
    if (turn) std::swap(of_a, of_b);
    one.regions.emplace(std::move(of_a), std::move(of_b));
  }
  return one;
}

void expect_turned(const diagnose::Difference& there, const diagnose::Difference& back) {
  EXPECT_NEAR(there.value, -back.value, 1e-12);
  EXPECT_NEAR(there.low, -back.high, 1e-9);
  EXPECT_NEAR(there.high, -back.low, 1e-9);
}

TEST_P(Recorded, SwappedSidesFindTheSameTurned) {
  const Compared there = compare(a(), b()), back = compare(b(), a());
  EXPECT_EQ(regions_of(there.match), mirrored(regions_of(back.match)));
  EXPECT_EQ(there.match.unmatched_a, back.match.unmatched_b);
  EXPECT_EQ(there.match.unmatched_b, back.match.unmatched_a);
  ASSERT_EQ(there.comparison.findings.size(), back.comparison.findings.size());
  for (std::size_t i = 0; i < there.comparison.findings.size(); ++i) {
    const diagnose::Finding& x = there.comparison.findings[i];
    const diagnose::Finding& y = back.comparison.findings[i];
    EXPECT_EQ(said(there.comparison, x, false), said(back.comparison, y, true)) << x.cause.key;
    EXPECT_DOUBLE_EQ(x.saving.joules.value, y.saving.joules.value);
    EXPECT_DOUBLE_EQ(x.share_of_run, y.share_of_run);
    EXPECT_EQ(x.cause.where, y.cause.where);
    expect_turned(x.difference, y.difference);
  }
  expect_turned(there.comparison.whole, back.comparison.whole);
}

Operators renamed(const Operators& operators, const std::vector<std::size_t>& original) {
  Operators back;
  for (const std::size_t i : operators) back.insert(original[i]);
  return back;
}

// Regions of the disguised runs in the numbers of the recorded ones.
Regions undisguised(const match::Match& match, const Disguised& a, const Disguised& b) {
  Regions regions;
  for (const auto& [of_a, of_b] : regions_of(match))
    regions.emplace(renamed(of_a, a.original), renamed(of_b, b.original));
  return regions;
}

// As a message: how many regions are of one side only, and the first.
std::string apart(const Regions& wanted, const Regions& got) {
  std::string text;
  for (const auto& [what, from, other] :
       {std::tuple("missing", &wanted, &got), std::tuple("new", &got, &wanted)}) {
    std::size_t count = 0;
    for (const auto& region : *from)
      if (!other->contains(region) && count++ == 0)
        text += std::string(what) + ": " + testing::PrintToString(region) + "\n";
    text += std::to_string(count) + " " + what + "\n";
  }
  return text;
}

void expect_same_regions(const Regions& wanted, const Disguised& a, const Disguised& b) {
  for (const Disguised* one : {&a, &b}) {
    const Status valid = run::validate(one->run);
    ASSERT_TRUE(valid) << valid.error().message;
  }
  const Regions got = undisguised(match::match(a.run, b.run), a, b);
  EXPECT_TRUE(got == wanted) << apart(wanted, got);
}

TEST_P(Recorded, NumbersCarryNoMeaning) {
  const Regions wanted = regions_of(match::match(a().run, b().run));
  for (const std::uint64_t seed : {1, 2, 3})
    expect_same_regions(wanted, renumbered(a().run, seed), renumbered(b().run, seed + 10));
}

TEST_P(Recorded, NamesCarryNoMeaning) {
  expect_same_regions(regions_of(match::match(a().run, b().run)), nameless(a().run),
                      nameless(b().run));
}

TEST_P(Recorded, TheOrderOfIndependentOperatorsCarriesNoMeaning) {
  const Regions wanted = regions_of(match::match(a().run, b().run));
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Disguised of_a = reordered(a().run, seed), of_b = reordered(b().run, seed + 10);
    expect_same_regions(wanted, of_a, of_b);
  }
}

// "hf-39073" -> "hf_39073".
std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Recorded, testing::ValuesIn(case_ids()), test_name);

}  // namespace
}  // namespace joulediff::invariants
