#include "cli/terminal.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/format.h"

namespace joulediff::cli {

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

Status print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return {};
  return fail(ExitCode::environment,
              fmt::format("cannot write to stdout: {}; free some space or write elsewhere",
                          std::system_category().message(errno)));
}

void complain(std::string_view message) {
  std::fprintf(stderr, "joulediff: %s\n", printable(message).c_str());
}

void guard_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(open("/dev/null", O_RDONLY));  // the lowest number: `stream`
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace joulediff::cli
