// Tables of spoiled submissions, each with the check that must say so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "rules/mlperf_rules.h"
#include "run/test_submissions.h"

namespace joulediff::rules {

using run::Submission;
using testing::HasSubstr;

inline const MlperfCheck* find(const MlperfJudgement& judgement, const std::string& id) {
  const auto found = std::ranges::find(judgement.checks, id, &MlperfCheck::id);
  return found == judgement.checks.end() ? nullptr : &*found;
}

inline const Objection* objection(const MlperfJudgement& judgement, const std::string& rule) {
  const auto found = std::ranges::find(judgement.objections, rule, &Objection::rule);
  return found == judgement.objections.end() ? nullptr : &*found;
}

struct Case {
  const char* id;
  Checked official;
  Checked ours;
  const char* says;
  std::function<void(Submission&)> spoil;
};

inline void expect(const Submission& good, const std::vector<Case>& cases) {
  for (const MlperfCheck& check : judge(good).checks)
    EXPECT_EQ(check.ours, Checked::passed) << check.id << ": " << check.message;
  for (const Case& one : cases) {
    Submission spoiled = good;
    one.spoil(spoiled);
    const MlperfJudgement judgement = judge(spoiled);
    const MlperfCheck* check = find(judgement, one.id);
    ASSERT_NE(check, nullptr) << one.id;
    EXPECT_EQ(check->ours, one.ours) << one.id << ": " << check->message;
    EXPECT_EQ(check->official, one.official) << one.id << ": " << check->message;
    EXPECT_THAT(check->message, HasSubstr(one.says)) << one.id;
    if (one.ours != Checked::unchecked) {
      EXPECT_FALSE(check->remedy.empty()) << one.id;
    }
    if (one.ours == Checked::failed) {
      EXPECT_EQ(judgement.ours, Checked::failed) << one.id;
    }
  }
}

constexpr Checked kPass = Checked::passed, kWarn = Checked::warned, kFail = Checked::failed,
                  kNone = Checked::unchecked;

}  // namespace joulediff::rules
