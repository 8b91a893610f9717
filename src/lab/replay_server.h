// The launcher's end of the socket: one judge for each process that replays, and who has made all
// of its passes.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>
#include <thread>

#include "base/result.h"
#include "lab/replay_judge.h"

namespace joulediff::lab {

class ReplayServer {
 public:
  using MakeJudge = std::function<ReplayJudge()>;

  // Listens on a socket in a new private folder; `make_judge` is called for each connection.
  static Result<std::unique_ptr<ReplayServer>> open(MakeJudge make_judge);
  ~ReplayServer();
  ReplayServer(const ReplayServer&) = delete;
  ReplayServer& operator=(const ReplayServer&) = delete;

  const std::string& path() const { return path_; }

  // The processes that have said `done`.
  std::set<pid_t> done() const;
  // When the last of them did; 0: none has.
  Nanoseconds last_done() const;

  // Ends serving. What was planned, measured and cut over all connections.
  ReplayJudge::Tally stop();

 private:
  struct Connection;
  ReplayServer() = default;
  void serve(std::stop_token stop);
  bool talk(Connection& connection);

  MakeJudge make_judge_;
  std::string folder_;
  std::string path_;
  int listener_ = -1;
  ReplayJudge::Tally tally_;  // written by the thread, read after it has ended
  mutable std::mutex mutex_;  // over what follows
  std::set<pid_t> done_;
  Nanoseconds last_done_ = 0;
  std::jthread thread_;
};

}  // namespace joulediff::lab
