// A program that records itself and does to itself what programs do: damaged VERB[:VALUE]...
//
// The verbs act in their order:
//   values  order  trace:SECONDS   passes of two operators a step
//   done                           tells the launcher that the passes are made
//   fork     both processes go on; the parent waits for its child at its end
//   daemon   goes on in a session of its own, whose parents have ended
//   exec     goes on as another program
//   thread   goes on in a thread, while main has ended
//   close    closes all descriptors from 3 on
//   limit:BYTES   of a file; -1: none
//   lock     nobody may write in the spools' folder any more
//   ignore   SIGINT and SIGTERM
//   sleep:SECONDS   kill   exit:STATUS

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "joulediff/record.h"

namespace {

using namespace std::chrono_literals;

void* library = nullptr;

template <class Function>
Function* function(const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

std::uint64_t now() {
  const auto read = function<decltype(jd_now)>("jd_now");
  return read == nullptr ? 0 : read();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::uint32_t next_step = 0;

// Half of it at work, so that a meter of the processor has something to see.
void step(std::uint32_t pass) {
  const std::uint64_t begin = now();
  const auto working = std::chrono::steady_clock::now() + 5ms;
  for (std::uint32_t place = 0; place < 2; ++place) {
    if (pass == JD_ORDER)
      if (const auto call = function<decltype(jd_operator_begin)>("jd_operator_begin"))
        call(next_step, place, "test.double");
    while (std::chrono::steady_clock::now() < working) continue;
    std::this_thread::sleep_for(2ms);
    if (pass == JD_ORDER)
      if (const auto call = function<decltype(jd_operator_end)>("jd_operator_end")) call();
  }
  if (const auto call = function<decltype(jd_step)>("jd_step"))
    call(pass, next_step, begin, now(), nullptr);
  ++next_step;
}

void values() {
  const auto fact = function<decltype(jd_fact)>("jd_fact");
  const auto tensor = function<decltype(jd_tensor)>("jd_tensor");
  const auto op = function<decltype(jd_operator)>("jd_operator");
  if (fact == nullptr || tensor == nullptr || op == nullptr) return;
  fact("manifest", R"({"framework":"none","work_unit":"item","work_per_step":64})");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    jd_tensor_info info{};
    info.id = info.storage = id;
    info.dims = 1;
    info.role = id == 1 ? JD_INPUT : JD_COMPUTED;
    info.shape[0] = 64;
    info.stride[0] = 1;
    jd_fingerprint& print = info.fingerprint;
    print.count = 64;
    print.dtype = 1;
    print.distinct = 3;
    print.mean = print.mean_abs = print.rms = print.max = 1.0 + static_cast<double>(id);
    print.own[0] = print.bf16[0] = print.fp16[0] = 1000 + static_cast<std::uint32_t>(id);
    tensor(&info);
  }
  for (std::uint64_t place = 0; place < 2; ++place) {
    const std::uint64_t in = place + 1, out = place + 2;
    op(static_cast<std::uint32_t>(place), "test.double", &in, 1, &out, 1,
       R"json({"signature":"double(64)","view":false})json");
  }
  step(JD_VALUES);
}

void flush() {
  if (const auto call = function<decltype(jd_flush)>("jd_flush")) call();
}

void done() {
  flush();
  const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  environment("JOULEDIFF_SOCKET").copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    (void)!write(connection, "done\n", 5);
  close(connection);
}

void become_daemon() {
  for (int i = 0; i < 2; ++i) {
    if (fork() > 0) _exit(0);
    setsid();
  }
}

void run(std::vector<std::string> verbs);

void become_another(const std::vector<std::string>& rest) {
  std::vector<std::string> words{"/proc/self/exe"};
  words.insert(words.end(), rest.begin(), rest.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  flush();
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

void act(const std::string& verb, double value, const std::vector<std::string>& rest) {
  if (verb == "values") values();
  if (verb == "order")
    for (int i = 0; i < 3; ++i) step(JD_ORDER);
  if (verb == "trace") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(value);
    do step(JD_TRACE);
    while (std::chrono::steady_clock::now() < end);
  }
  if (verb == "done") done();
  if (verb == "fork" && fork() > 0)
    std::atexit([] {
      while (wait(nullptr) > 0 || errno == EINTR) continue;
    });
  if (verb == "daemon") become_daemon();
  if (verb == "exec") become_another(rest);
  if (verb == "thread") {
    std::thread(run, rest).detach();
    pthread_exit(nullptr);
  }
  if (verb == "close")
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  if (verb == "limit") {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = value < 0 ? limit.rlim_max : static_cast<rlim_t>(value);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (verb == "lock") chmod(environment("JOULEDIFF_SPOOL").c_str(), 0555);
  if (verb == "ignore") {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
  }
  if (verb == "sleep") std::this_thread::sleep_for(std::chrono::duration<double>(value));
  if (verb == "kill") std::raise(SIGKILL);
  if (verb == "exit") std::exit(static_cast<int>(value));
}

void run(std::vector<std::string> verbs) {
  while (!verbs.empty()) {
    const std::string verb = verbs.front();
    verbs.erase(verbs.begin());
    const std::size_t colon = verb.find(':');
    act(verb.substr(0, colon), colon == std::string::npos ? 0 : std::atof(&verb[colon + 1]), verbs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  library = dlopen(environment("JOULEDIFF_LIBRARY").c_str(), RTLD_NOW);
  run({argv + 1, argv + argc});
}
