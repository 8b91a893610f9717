// Any bytes as a measurement in TOML: read or refused in one line, and what is read can be checked.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rules/boundaries.h"
#include "rules/grammar.h"
#include "run/point.h"

namespace {

void expect(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto point = joulediff::run::read_point_text("point.toml", bytes);
  if (!point) {
    expect(!point.error().message.empty());
    expect(point.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& objection : joulediff::rules::check(*point, *point)) {
    expect(!objection.message.empty() && !objection.remedy.empty() && !objection.rule.empty());
  }
  static_cast<void>(joulediff::rules::check(*point));
  static_cast<void>(joulediff::rules::boundaries({&*point, 1}, {&*point, 1}));
  return 0;
}
