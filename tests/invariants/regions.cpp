// regions A.jd B.jd: the matched regions by the numbers of their operators, one a line:
// "0 1 2 | 0 1". For tests that look at the regions of runs without energy.
#include <cstdio>
#include <string>

#include "match/match.h"
#include "run/run_file.h"

namespace {

std::string text(const std::vector<joulediff::run::OperatorId>& operators) {
  std::string out;
  for (const joulediff::run::OperatorId op : operators) out += std::to_string(op.index()) + " ";
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace joulediff;
  if (argc != 3) {
    std::fprintf(stderr, "usage: regions A.jd B.jd\n");
    return 2;
  }
  const Result<run::Run> a = run::read_run(argv[1]), b = run::read_run(argv[2]);
  for (const Result<run::Run>* run : {&a, &b})
    if (!*run) {
      std::fprintf(stderr, "regions: %s\n", run->error().message.c_str());
      return 1;
    }
  for (const match::Region& region : match::match(*a, *b).regions)
    std::printf("%s| %s\n", text(region.a).c_str(), text(region.b).c_str());
  return 0;
}
