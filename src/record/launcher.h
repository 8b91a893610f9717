// What an engine's process tells the launcher and hears from it (docs/recording.md, "Socket").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace joulediff::record {

// The launcher's side of the socket. Once it is lost every answer is "no more".
class Launcher {
 public:
  Launcher() = default;
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // JOULEDIFF_SOCKET; null: nobody launched this process.
  static const char* path();
  // True: there is one, and it answers.
  bool connect();
  bool lost() const { return socket_ < 0; }
  // This process has made its passes: it need not be waited for, and may be ended.
  void done() { say("done\n"); }
  // How many of `count` replays it has time for.
  std::uint64_t plan(std::uint64_t count);
  // Tells of a chunk; how many executions it wants next.
  std::uint64_t more(std::uint64_t number, std::uint64_t begin, std::uint64_t end,
                     std::uint64_t count);

 private:
  bool say(const std::string& line);
  std::optional<std::uint64_t> hear(const char* word);
  void lose();

  int socket_ = -1;
  std::string heard_;
};

}  // namespace joulediff::record
