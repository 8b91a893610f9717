#include "lab/workers.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace joulediff::lab {
namespace {

using testing::ElementsAre;
using testing::Pair;

SpoolContents process(std::uint32_t pid, const std::string& fact) {
  SpoolContents spool;
  spool.pid = pid;
  spool.facts = {{"process", fact}};
  spool.steps = {{}};
  return spool;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> pids_and_ranks(
    const std::vector<SpoolContents>& spools) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  for (const Worker& worker : workers(spools)) all.emplace_back(worker.spool->pid, worker.rank);
  return all;
}

TEST(Workers, AreNumberedAsTheyWereTold) {
  EXPECT_THAT(pids_and_ranks({process(7, R"({"rank":5})"), process(8, R"({"rank":4})")}),
              ElementsAre(Pair(8, 4), Pair(7, 5)));
}

// Whichever comes first is chance; which one multiprocessing made first is not.
TEST(Workers, OfMultiprocessingAreNumberedInTheOrderOfTheirMaking) {
  EXPECT_THAT(pids_and_ranks({process(7, R"({"identity":[10],"started":1})"),
                              process(8, R"({"identity":[2,1],"started":3})"),
                              process(9, R"({"identity":[2],"started":2})"), process(6, R"({})")}),
              ElementsAre(Pair(6, 0), Pair(9, 1), Pair(8, 2), Pair(7, 3)));
}

TEST(Workers, OfOtherKindsAreNumberedInTheOrderOfTheirStart) {
  EXPECT_THAT(pids_and_ranks({process(7, R"({"started":30})"), process(900, R"({"started":20})"),
                              process(8, R"({"started":30})")}),
              ElementsAre(Pair(900, 0), Pair(7, 1), Pair(8, 2)));
}

// Each of two nodes' launchers numbers from 0; workers of a ranked process inherit its number.
TEST(Workers, WithTheSameRankGetOneOfTheirOwn) {
  EXPECT_THAT(pids_and_ranks({process(7, R"({"rank":3,"identity":[2]})"),
                              process(8, R"({"rank":3,"identity":[1]})")}),
              ElementsAre(Pair(8, 0), Pair(7, 1)));
}

TEST(Workers, ThatSayNonsenseAreNumberedAllTheSame) {
  EXPECT_THAT(pids_and_ranks({process(7, R"({"rank":-1,"identity":"x","started":1.5})"),
                              process(3, "[]"), process(5, R"({"rank":99999999999})")}),
              ElementsAre(Pair(3, 0), Pair(5, 1), Pair(7, 2)));
}

TEST(Workers, MakeSteps) {
  SpoolContents idle = process(7, R"({"rank":0})");
  idle.steps.clear();
  EXPECT_TRUE(workers({idle}).empty());
}

}  // namespace
}  // namespace joulediff::lab
