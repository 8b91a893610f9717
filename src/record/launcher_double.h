// For tests: a launcher that gives the answers it was told to, one to each line, and then hangs up.
#pragma once

#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace joulediff::record {

class LauncherDouble {
 public:
  explicit LauncherDouble(std::vector<std::string> answers) : answers_(std::move(answers)) {
    char folder[] = "/tmp/jd-launcher-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/socket";
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    listen(listener_, 1);
    thread_ = std::thread([this] { serve(); });
  }
  ~LauncherDouble() {
    heard();
    close(listener_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  LauncherDouble(const LauncherDouble&) = delete;
  LauncherDouble& operator=(const LauncherDouble&) = delete;

  const std::string& path() const { return path_; }
  // What it was told; after the program has ended.
  std::vector<std::string> heard() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return lines_;
  }

 private:
  void serve() {
    const int connection = accept(listener_, nullptr, nullptr);
    std::string line;
    char c = 0;
    while (connection >= 0 && recv(connection, &c, 1, 0) == 1) {
      if (c != '\n') {
        line += c;
        continue;
      }
      lines_.push_back(std::move(line));
      line.clear();
      if (lines_.size() > answers_.size()) break;
      const std::string answer = answers_[lines_.size() - 1] + "\n";
      send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    close(connection);
  }

  std::vector<std::string> answers_, lines_;
  std::string folder_, path_;
  int listener_ = -1;
  std::thread thread_;
};

}  // namespace joulediff::record
