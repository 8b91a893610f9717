// Plans for tests: small numbers, so that a year can be computed by hand.
#pragma once

#include <map>
#include <string>

#include "facility/plan.h"

namespace joulediff::facility {

// Files of a test, by path; no run files unless given.
struct TestFiles {
  std::map<std::string, std::string> texts{};
  std::map<std::string, Measured> runs{};

  Surroundings surroundings() const {
    return {[this](const std::string& path) -> Result<std::string> {
              const auto found = texts.find(path);
              if (found != texts.end()) return found->second;
              return fail(ExitCode::bad_input, "cannot read " + path);
            },
            [this](const std::string& path) -> Result<Measured> {
              const auto found = runs.find(path);
              if (found != runs.end()) return found->second;
              return fail(ExitCode::bad_input, "cannot read " + path);
            }};
  }
};

// A unit a second, all year round, in a year of 8760 hours of UTC.
inline const std::string kHead = R"(schema = "joulediff.plan/1"
zone = "UTC"
year = 2023
)";
inline const std::string kService = R"([service]
unit = "request"
per_year = 31536000
peak_factor = 1
)";
inline const std::string kSlo = R"([slo]
share = 0.99
utilisation = 0.5
)";
inline const std::string kSite = R"([site]
pue = 1.5
redundancy = 1
)";
inline const std::string kTariff = R"([tariff]
currency = "EUR"
energy = 0.2
demand_charge = 10
)";
inline const std::string kCarbon = R"([carbon]
intensity = 400
zone = "DE"
kind = "average"
basis = "location"
)";
inline const std::string kA = R"([[alternatives]]
name = "A"
boundary = "board"
joules_per_unit = 100
throughput = 4
idle_watts = 50
rest_watts = 20
supply_efficiency = 0.8
peak_watts = 500
cost_per_year = 1000
[alternatives.embodied]
kg = 100
lifetime_years = 4
share = 0.5
)";
inline const std::string kPlan = kHead + kService + kSlo + kSite + kTariff + kCarbon + kA;

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text + "\n#!missing " + from : text.replace(at, from.size(), to);
}

}  // namespace joulediff::facility
