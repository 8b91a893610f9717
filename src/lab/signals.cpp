#include "lab/signals.h"

#include <array>
#include <ctime>

namespace joulediff::lab {
namespace {

constexpr std::array kAsksForTheEnd = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

Signals::Signals() {
  sigemptyset(&requests_);
  for (int signal : kAsksForTheEnd) sigaddset(&requests_, signal);
  struct sigaction on_hangup{};
  sigaction(SIGHUP, nullptr, &on_hangup);
  if (on_hangup.sa_handler == SIG_IGN) sigdelset(&requests_, SIGHUP);  // nohup
  ours_ = requests_;
  for (int signal : {SIGCHLD, SIGUSR1, SIGUSR2}) sigaddset(&ours_, signal);
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

Signals::~Signals() {
  take_request();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::wait() const {
  const timespec patience{0, 100'000'000};
  const int signal = sigtimedwait(&ours_, nullptr, &patience);
  return signal > 0 ? signal : 0;
}

bool Signals::take_request() const {
  const timespec now{};
  bool asked = false;
  while (sigtimedwait(&requests_, nullptr, &now) > 0) asked = true;
  return asked;
}

}  // namespace joulediff::lab
