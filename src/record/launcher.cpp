#include "record/launcher.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace joulediff::record {
namespace {

constexpr time_t kAnswerSeconds = 120;
constexpr std::size_t kLongestAnswer = 256;

}  // namespace

Launcher::~Launcher() {
  lose();
}

void Launcher::lose() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

const char* Launcher::path() {
  const char* const path = std::getenv("JOULEDIFF_SOCKET");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

bool Launcher::connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const char* const path = Launcher::path();
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return false;
  std::strcpy(address.sun_path, path);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{kAnswerSeconds, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) lose();
  return !lost();
}

bool Launcher::say(const std::string& line) {
  for (std::size_t sent = 0; !lost() && sent < line.size();) {
    const ssize_t size = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size > 0)
      sent += static_cast<std::size_t>(size);
    else if (errno != EINTR)
      lose();
  }
  return !lost();
}

// The number after `word`; none where the launcher says "enough", or what it does not say: then it
// is lost.
std::optional<std::uint64_t> Launcher::hear(const char* word) {
  std::size_t end;
  while ((end = heard_.find('\n')) == std::string::npos) {
    char bytes[kLongestAnswer];
    const ssize_t size = recv(socket_, bytes, sizeof bytes, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || heard_.size() > kLongestAnswer) {
      lose();
      return {};
    }
    heard_.append(bytes, static_cast<std::size_t>(size));
  }
  const std::string line = heard_.substr(0, end);
  heard_.erase(0, end + 1);
  const std::string begin = std::string(word) + " ";
  std::uint64_t number = 0;
  if (line.starts_with(begin)) {
    const char* const last = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + begin.size(), last, number);
    if (error == std::errc() && stop == last) return number;
  }
  if (line != "enough") lose();
  return {};
}

std::uint64_t Launcher::plan(std::uint64_t count) {
  return say("plan " + std::to_string(count) + "\n") ? hear("replay").value_or(0) : 0;
}

std::uint64_t Launcher::more(std::uint64_t number, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t count) {
  std::string line = "replay";
  for (const std::uint64_t n : {number, begin, end, count}) line += " " + std::to_string(n);
  return say(line + "\n") ? hear("more").value_or(0) : 0;
}

}  // namespace joulediff::record
