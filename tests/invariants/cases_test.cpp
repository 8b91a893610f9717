// What each recorded pair is known to show.
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recorded.h"

namespace joulediff::invariants {
namespace {

using testing::HasSubstr;

Compared compare_case(const std::string& id) {
  return compare(side(id, "a"), side(id, "b"));
}

// The first finding whose key names `key`.
std::optional<diagnose::Finding> finding(const Compared& compared, const std::string& key) {
  for (const diagnose::Finding& one : compared.comparison.findings)
    if (one.cause.key.find(key) != std::string::npos) return one;
  return std::nullopt;
}

TEST(Cases, GeluInPiecesIsWaste) {
  JD_NEEDS("hf-39073");
  const auto found = finding(compare_case("hf-39073"), "gelu");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->side, diagnose::Side::a);
  EXPECT_EQ(found->outcome, diagnose::Outcome::waste);
  EXPECT_EQ(found->cause.kind, diagnose::CauseKind::operators);
  EXPECT_EQ(found->regions.size(), 12u) << "one region a layer";
  EXPECT_LE(found->difference.high, -0.75) << "the fused side surely needs 75 % less";
  ASSERT_TRUE(found->cause.where);
  EXPECT_THAT(found->cause.where->file, HasSubstr("transformers/activations.py"));
}

TEST(Cases, TheMatmulPrecisionIsNamed) {
  JD_NEEDS("hf-14450");
  const auto found = finding(compare_case("hf-14450"), "float32_matmul_precision");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->side, diagnose::Side::a);
  EXPECT_EQ(found->cause.kind, diagnose::CauseKind::setting);
  EXPECT_THAT(found->advice, HasSubstr("high"));
}

TEST(Cases, TheLayerNormIsNamed) {
  JD_NEEDS("pytorch-76012");
  const auto found = finding(compare_case("pytorch-76012"), "native_layer_norm");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->side, diagnose::Side::a);
  EXPECT_EQ(found->outcome, diagnose::Outcome::waste);
  ASSERT_TRUE(found->cause.where);
  EXPECT_THAT(found->cause.where->file, HasSubstr("permuted.py"));
}

double joules(const Side& side, const std::vector<run::OperatorId>& operators) {
  double sum = 0;
  for (const run::OperatorId op : operators)
    sum += side.cost.operators[op.index()].total.joules.value;
  return sum;
}

TEST(Cases, MostOfTheEnergyOfTwoSystemsIsMatched) {
  JD_NEEDS("vit");
  const Compared compared = compare_case("vit");
  for (const std::string letter : {"a", "b"}) {
    const Side& one = side("vit", letter);
    double all = 0, matched = 0;
    for (const attribute::OperatorCost& cost : one.cost.operators) all += cost.total.joules.value;
    for (const match::Region& region : compared.match.regions)
      if (!region.a.empty() && !region.b.empty())
        matched += joules(one, letter == "a" ? region.a : region.b);
    EXPECT_GE(matched, 0.9 * all) << letter;
  }
}

enum class Half { attention, mlp };

// The encoder block that an operator belongs to, and the half of it.
struct Place {
  int block = 0;
  Half half = Half::attention;
  auto operator<=>(const Place&) const = default;
};

std::optional<Place> place(const run::Operator& op) {
  std::vector<std::string> parts;  // "vit.layers.3.attention.q_proj" by its dots
  std::istringstream module(op.module);
  for (std::string part; std::getline(module, part, '.');) parts.push_back(part);
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i] != "layers" && parts[i] != "blocks") continue;
    const std::string& half = parts[i + 2];
    if (half == "mlp") return Place{std::stoi(parts[i + 1]), Half::mlp};
    if (half == "attention" || half == "attn")
      return Place{std::stoi(parts[i + 1]), Half::attention};
  }
  return std::nullopt;
}

TEST(Cases, EveryEncoderBlockSplits) {
  JD_NEEDS("vit");
  const Compared compared = compare_case("vit");
  for (const std::string letter : {"a", "b"}) {
    const run::Run& run = side("vit", letter).run;
    std::set<Place> seen;
    for (std::size_t r = 0; r < compared.match.regions.size(); ++r) {
      const match::Region& region = compared.match.regions[r];
      std::map<int, Half> half_of;
      for (const run::OperatorId id : letter == "a" ? region.a : region.b) {
        const run::Operator& op = run.operators[id.index()];
        const std::optional<Place> at = place(op);
        if (op.view || !at) continue;
        seen.insert(*at);
        const auto [first, fresh] = half_of.emplace(at->block, at->half);
        EXPECT_EQ(first->second, at->half)
            << letter << ": region " << r << " holds attention and MLP of block " << at->block;
      }
      EXPECT_LE(half_of.size(), 1u) << letter << ": region " << r << " spans blocks";
    }
    EXPECT_EQ(seen.size(), 24u) << letter << ": 12 blocks of two halves";
  }
}

}  // namespace
}  // namespace joulediff::invariants
