// seal DATABASE OUT [VERSION]: makes a run file of a database, with the right digest. So a test can
// write a file that is wrong inside and right outside.
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "run/database.h"
#include "run/run_file.h"

int main(int argc, char** argv) {
  using namespace joulediff;
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: seal DATABASE OUT [VERSION]\n");
    return 2;
  }
  const Result<std::string> database = read_file(argv[1], run::kMaxRunFileBytes);
  const auto version = argc == 4 ? static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10))
                                 : run::kFormatVersion;
  const Status written = database ? write_file_atomically(argv[2], run::seal(*database, version))
                                  : Status(fail(database.error()));
  if (written) return 0;
  std::fprintf(stderr, "seal: %s\n", written.error().message.c_str());
  return 1;
}
