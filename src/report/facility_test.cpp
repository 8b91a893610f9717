#include "report/facility.h"

#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "facility/test_plans.h"

namespace joulediff::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

facility::Study study_of(const std::string& text) {
  const facility::TestFiles files;
  auto plan = facility::read_plan(text, "plan.toml", files.surroundings());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? facility::study(std::move(*plan)) : facility::Study();
}

// Two alternatives whose names and sources are as hostile as text can be.
facility::Study hostile() {
  std::string text = facility::replaced(facility::kPlan, "name = \"A\"",
                                        "name = \"=1+<script>alert('&')</script>\\u001b[31m\"");
  text = facility::replaced(text, "pue = 1.5",
                            "pue_source = \"</td><img src=x onerror=y>\"\npue = 1.5");
  return study_of(text + facility::kA);
}

TEST(FacilityReport, PageEscapesEverything) {
  const std::string page = facility_html(hostile());
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<img")), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(page, HasSubstr("=1+&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;?[31m"));
}

TEST(FacilityReport, PageNeedsNothingElse) {
  const std::string page = facility_html(hostile());
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")), Not(HasSubstr("src=\"")),
                    Not(HasSubstr("url(")), Not(HasSubstr("@import"))));
  EXPECT_THAT(page,
              AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("default-src 'none'")));
}

TEST(FacilityReport, TableHoldsNoFormula) {
  std::istringstream lines(facility_csv(hostile()));
  for (std::string line; std::getline(lines, line);)
    for (const char* begin : {"=", "+", "-", "@"}) {
      EXPECT_NE(line.substr(0, 1), begin);
      EXPECT_THAT(line, Not(HasSubstr(std::string(",") + begin + "1+")));
    }
}

TEST(FacilityReport, TextFitsTheTerminal) {
  std::istringstream lines(facility_text(hostile()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 100u) << line;
}

// Device claims stand before everything in which the PUE is, and are the same without it.
TEST(FacilityReport, DevicesStandBeforeTheSite) {
  const std::string text = facility_text(study_of(facility::kPlan));
  EXPECT_LT(text.find("Devices, without site"), text.find("Energy of the year"));
  const auto device = [](const std::string& plan) {
    return nlohmann::json::parse(facility_json(study_of(plan)))["alternatives"][0]["device"];
  };
  EXPECT_EQ(device(facility::kPlan),
            device(facility::replaced(facility::kPlan, "pue = 1.5", "pue = 3")));
}

TEST(FacilityReport, UnknownIsNull) {
  const std::string text = facility::kHead + facility::kService + facility::kSlo + facility::kSite +
                           facility::replaced(facility::kA, "cost_per_year = 1000\n", "");
  const auto json = nlohmann::json::parse(facility_json(study_of(text)));
  EXPECT_TRUE(json["alternatives"][0]["year"]["cost"]["base"].is_null());
  EXPECT_TRUE(json["alternatives"][0]["year"]["sci"]["base"].is_null());
  EXPECT_TRUE(json["growth"]["factor"]["base"].is_null());
  EXPECT_TRUE(json["carbon"].is_null());
  for (const auto& [key, figure] : json["alternatives"][0]["year"].items()) {
    EXPECT_TRUE(figure.contains("unit") && figure.contains("boundary")) << key;
    EXPECT_EQ(figure["standing"], "modelled") << key;
  }
}

}  // namespace
}  // namespace joulediff::report
