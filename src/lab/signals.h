// Signals to the launcher are waited for, not handled: while this lives they are blocked in the
// thread that made it and in those that it starts. A program that is started meanwhile gets the
// mask that was there before. A request that comes while we end anyway is dropped with this.
#pragma once

#include <signal.h>

namespace joulediff::lab {

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  const sigset_t& before() const { return before_; }

  // The next signal: SIGCHLD, one that is the program's (SIGUSR1, SIGUSR2), or one that asks for
  // the end. 0: none within a tenth of a second.
  int wait() const;

  // Somebody asked for the end, and nobody has heard it yet.
  bool take_request() const;

 private:
  sigset_t ours_{};
  sigset_t requests_{};
  sigset_t before_{};
};

}  // namespace joulediff::lab
