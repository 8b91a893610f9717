#include "lab/replay_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "lab/clock.h"

namespace joulediff::lab {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr std::size_t kLongestLine = 4096;

// The process that connected; 0: not known.
pid_t peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace

struct ReplayServer::Connection {
  int socket = -1;
  std::string received;
  ReplayJudge judge;
};

// Answers every whole line that has come in. False: the other end is gone, or talks nonsense.
bool ReplayServer::talk(Connection& connection) {
  std::array<char, 4096> bytes;
  const ssize_t size = recv(connection.socket, bytes.data(), bytes.size(), 0);
  if (size <= 0) return size < 0 && (errno == EINTR || errno == EAGAIN);
  connection.received.append(bytes.data(), static_cast<std::size_t>(size));
  for (std::size_t end; (end = connection.received.find('\n')) != std::string::npos;) {
    const std::string line = connection.received.substr(0, end);
    connection.received.erase(0, end + 1);
    if (line == "done") {
      const std::scoped_lock lock(mutex_);
      done_.insert(peer_of(connection.socket));
      last_done_ = now();
      continue;
    }
    std::string answer = connection.judge.answer(line);
    if (answer.empty()) continue;
    answer += '\n';
    // Answers are a few bytes: they fit into the socket's buffer whole.
    if (send(connection.socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return false;
  }
  return connection.received.size() <= kLongestLine;
}

std::set<pid_t> ReplayServer::done() const {
  const std::scoped_lock lock(mutex_);
  return done_;
}

Nanoseconds ReplayServer::last_done() const {
  const std::scoped_lock lock(mutex_);
  return last_done_;
}

Result<std::unique_ptr<ReplayServer>> ReplayServer::open(MakeJudge make_judge) {
  const auto trouble = [](const char* what) {
    return fail(
        ExitCode::environment,
        std::string("the socket for replay: ") + what + ": " + std::strerror(errno) +
            (errno == EMFILE || errno == ENFILE ? "; close files, or raise ulimit -n" : ""));
  };
  // A socket's path may have 107 bytes: too few for some TMPDIR.
  std::string folder = (std::filesystem::path("/tmp") / "joulediff-XXXXXX").string();
  if (!mkdtemp(folder.data())) return trouble("a folder in /tmp");
  std::unique_ptr<ReplayServer> server(new ReplayServer);
  server->make_judge_ = std::move(make_judge);
  server->folder_ = folder;
  server->path_ = folder + "/socket";
  server->listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server->listener_ < 0) return trouble("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  server->path_.copy(address.sun_path, sizeof address.sun_path - 1);
  if (bind(server->listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return trouble("bind");
  if (listen(server->listener_, 16) != 0) return trouble("listen");
  server->thread_ =
      std::jthread([raw = server.get()](std::stop_token stop) { raw->serve(std::move(stop)); });
  return server;
}

ReplayServer::~ReplayServer() {
  stop();
  if (listener_ >= 0) close(listener_);
  if (!path_.empty()) unlink(path_.c_str());
  if (!folder_.empty()) rmdir(folder_.c_str());
}

ReplayJudge::Tally ReplayServer::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  return tally_;
}

void ReplayServer::serve(std::stop_token stop) {
  std::vector<Connection> connections;
  const auto end = [&](Connection& connection) {
    const ReplayJudge::Tally& tally = connection.judge.tally();
    tally_.planned += tally.planned;
    tally_.measured += tally.measured;
    tally_.cut += tally.cut;
    tally_.paced += tally.paced;
    tally_.spent += tally.spent;
    tally_.refused += tally.refused;
    close(connection.socket);
  };
  while (!stop.stop_requested()) {
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    for (const Connection& connection : connections)
      waiting.push_back({connection.socket, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), kPollMilliseconds) <= 0) continue;
    for (std::size_t i = waiting.size() - 1; i > 0; --i) {
      if (waiting[i].revents == 0 || talk(connections[i - 1])) continue;
      end(connections[i - 1]);
      connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (waiting[0].revents == 0) continue;
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) connections.push_back({socket, "", make_judge_()});
  }
  for (Connection& connection : connections) end(connection);
}

}  // namespace joulediff::lab
