// Any bytes as a plan and as the file that it names: up to the first byte 0 the plan, the rest the
// file, if there is one. That is also given to a plan of ours as prices and as carbon, so that the
// fuzzer need not find a plan first. What is refused says so in one line; what is read has a year
// whose lines sum up.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "facility/model.h"
#include "facility/test_plans.h"

namespace facility = joulediff::facility;

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

void check(const std::string& plan, const std::string& file) {
  const facility::Surroundings from{
      [&](const std::string&) { return joulediff::Result<std::string>(file); },
      [](const std::string&) {
        return joulediff::Result<facility::Measured>(facility::Measured());
      }};
  const auto read = facility::read_plan(plan, "plan.toml", from);
  if (!read) {
    expect(!read.error().message.empty());
    expect(read.error().message.find('\n') == std::string::npos);
    return;
  }
  expect(!read->alternatives.empty() && read->hours.size() > 8000);
  const facility::Year year =
      facility::year_of(*read, read->alternatives.front(), read->base_values());
  double sum = 0;
  double most = 0;
  for (const double line : year.lines) {
    if (std::isnan(line)) continue;  // not known apart
    sum += line;
    most = std::fmax(most, std::fabs(line));
  }
  if (std::isfinite(year.site) && std::isfinite(most))
    expect(std::fabs(sum - year.site) <= 1e-6 * most);
}

std::string with_file(const char* what) {
  return facility::replaced(facility::kPlan, what, "{ file = \"x.csv\" }");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string prices = with_file("0.2");
  static const std::string carbon = with_file("400");
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = bytes.find('\0');
  const std::string file = end == std::string::npos ? "" : bytes.substr(end + 1);
  check(bytes.substr(0, end), file);
  if (end == std::string::npos) return 0;
  check(prices, file);
  check(carbon, file);
  return 0;
}
