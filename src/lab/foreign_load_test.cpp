#include "lab/foreign_load.h"

#include <gtest/gtest.h>

namespace joulediff::lab {
namespace {

bool is_ours(pid_t pid) {
  return pid == 100 || pid == 101;
}
std::string visible(pid_t pid) {
  return pid < 1000 ? "python3" : "";
}

std::string others(const std::vector<device::BoardProcess>& before,
                   const std::vector<device::BoardProcess>& during) {
  ForeignLoad load;
  load.before(before);
  load.during(during, is_ours, visible);
  load.during(during, is_ours, visible);
  return load.described();
}

TEST(ForeignLoad, NamesWhoIsNotOfTheTree) {
  EXPECT_EQ(others({}, {{100, {}}, {101, 1ULL << 30}}), "");
  EXPECT_EQ(others({}, {{100, {}}, {200, 3ULL << 29}}), "python3 (process 200, 1.5 GiB)");
  EXPECT_EQ(others({}, {{201, {}}, {200, {}}}), "python3 (process 200), python3 (process 201)");
}

TEST(ForeignLoad, AProcessThatWeCannotSeeMayBeOurs) {
  EXPECT_EQ(others({}, {{5000, 1ULL << 30}}), "") << "numbered as in another namespace";
  EXPECT_EQ(others({{5000, {}}}, {{5000, 1ULL << 30}}), "a process (process 5000, 1.0 GiB)")
      << "it was there before";
  EXPECT_EQ(others({{200, {}}}, {{100, {}}}), "") << "gone before our program began";
}

}  // namespace
}  // namespace joulediff::lab
