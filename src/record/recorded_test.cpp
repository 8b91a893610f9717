#include "record/recorded.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "spool/kernels.h"

namespace joulediff::record {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void redirect(int fd, const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, fd);
  ::close(file);
}

}  // namespace

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::fflush(stderr);
  _exit(9);
}

Recorded recorded(const std::function<void()>& body, const Environment& environment) {
  Recorded r;
  char name[] = "/tmp/jd-record-XXXXXX";
  const fs::path top = mkdtemp(name);
  const fs::path spools = top / "spools";
  fs::create_directory(spools);
  r.folder = spools;
  std::fflush(nullptr);  // or the child would say it again
  const pid_t pid = fork();
  if (pid == 0) {
    redirect(STDOUT_FILENO, top / "out");
    redirect(STDERR_FILENO, top / "err");
    setenv("JOULEDIFF_SPOOL", spools.c_str(), 1);
    setenv("JOULEDIFF_CUPTI", "/nowhere/libcupti.so", 1);
    for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
    body();
    std::exit(0);
  }
  waitpid(pid, &r.status, 0);
  r.out = contents_of(top / "out");
  r.err = contents_of(top / "err");
  for (const auto& entry : fs::directory_iterator(spools))
    r.files[entry.path().filename()] = contents_of(entry.path());
  for (const auto& [file, bytes] : r.files) {
    spool::Contents contents;
    if (!spool::read(bytes, contents)) r.torn = true;
    r.torn |= contents.torn;
    r.records.insert(r.records.end(), contents.records.begin(), contents.records.end());
  }
  fs::remove_all(top);
  return r;
}

std::vector<std::string_view> Recorded::payloads(spool::Type type) const {
  std::vector<std::string_view> found;
  for (const auto& record : records)
    if (record.type == type) found.push_back(record.payload);
  return found;
}

std::vector<spool::Kernel> Recorded::kernels() const {
  std::vector<spool::Kernel> found;
  for (const auto payload : payloads(spool::Type::kernel))
    require(spool::read_kernels(payload, found), "a batch of kernels");
  return found;
}

std::vector<std::string> Recorded::facts(std::string_view topic) const {
  std::vector<std::string> found;
  for (const auto payload : payloads(spool::Type::fact)) {
    spool::Unpacker unpacker(payload);
    std::string_view name, json;
    if (unpacker.get(name) && unpacker.get(json) && name == topic) found.emplace_back(json);
  }
  return found;
}

std::map<std::uint32_t, std::string> Recorded::kernel_names() const {
  std::map<std::uint32_t, std::string> names;
  for (const auto payload : payloads(spool::Type::kernel_name)) {
    spool::Unpacker unpacker(payload);
    std::uint32_t id = 0;
    std::string_view name;
    if (unpacker.get(id) && unpacker.get(name)) names[id] = name;
  }
  return names;
}

}  // namespace joulediff::record
