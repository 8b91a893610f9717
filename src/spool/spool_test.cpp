#include "spool/spool.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "spool/crc32.h"

namespace joulediff::spool {
namespace {

static_assert(crc32("123456789") == 0xCBF43926u);
static_assert(sizeof(Step) == 32 && sizeof(OpTime) == 24 && sizeof(Kernel) == 64 &&
              sizeof(Correlation) == 16 && sizeof(LaunchStack) == 8 &&
              sizeof(Synchronisation) == 32 && sizeof(Clock) == 16);

// A file name that nothing has, removed at the end.
struct Path {
  char name[32] = "/tmp/jd-spool-XXXXXX";
  Path() {
    ::close(mkstemp(name));
    std::remove(name);
  }
  ~Path() { std::remove(name); }
  std::string text() const {
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

std::string written(const std::vector<std::string>& payloads) {
  const Path path;
  Writer writer;
  EXPECT_TRUE(writer.open(path.name));
  for (const auto& payload : payloads) writer.append(Type::fact, payload);
  writer.flush();
  EXPECT_TRUE(writer.ok());
  return path.text();
}

std::vector<std::string> payloads_of(const Contents& contents) {
  std::vector<std::string> out;
  for (const Record& record : contents.records) out.emplace_back(record.payload);
  return out;
}

TEST(Spool, GivesBackWhatWasWritten) {
  const std::vector<std::string> payloads{"one", "", std::string(200'000, 'x'), "four"};
  const std::string bytes = written(payloads);
  Contents contents;
  ASSERT_TRUE(read(bytes, contents));
  EXPECT_EQ(payloads_of(contents), payloads);
  EXPECT_FALSE(contents.torn);
  EXPECT_EQ(contents.whole_bytes, bytes.size());
}

TEST(Spool, RefusesWhatIsNotASpool) {
  Contents contents;
  EXPECT_FALSE(read("", contents));
  EXPECT_FALSE(read("JDSPOOL1", contents));
  EXPECT_FALSE(read("SQLite format 3 and so on", contents));
}

RC_GTEST_PROP(Spool, ATruncatedFileKeepsItsWholeRecords, ()) {
  const auto payloads = *rc::gen::resize(12, rc::gen::arbitrary<std::vector<std::string>>());
  const std::string bytes = written(payloads);
  std::size_t whole = 0, end = kHeaderBytes;
  for (std::size_t cut = kHeaderBytes; cut <= bytes.size(); ++cut) {
    if (whole < payloads.size() && cut == end + 12 + payloads[whole].size()) {
      end = cut;
      ++whole;
    }
    Contents contents;
    RC_ASSERT(read(std::string_view(bytes).substr(0, cut), contents));
    RC_ASSERT(contents.records.size() == whole);
    RC_ASSERT(std::equal(contents.records.begin(), contents.records.end(), payloads.begin(),
                         [](const Record& r, const std::string& p) { return r.payload == p; }));
    RC_ASSERT(contents.whole_bytes == end);
    RC_ASSERT(contents.torn == (cut != end));
  }
}

RC_GTEST_PROP(Spool, ADamagedByteEndsTheFileBeforeItsRecord, ()) {
  const auto payloads = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<std::string>>());
  std::string bytes = written(payloads);
  const auto where = *rc::gen::inRange(kHeaderBytes, bytes.size());
  bytes[where] = static_cast<char>(bytes[where] ^ *rc::gen::inRange(1, 256));
  std::size_t record = 0, end = kHeaderBytes;
  while (end + 12 + payloads[record].size() <= where) end += 12 + payloads[record++].size();
  Contents contents;
  RC_ASSERT(read(bytes, contents));
  RC_ASSERT(contents.torn);
  RC_ASSERT(contents.whole_bytes == end);
  RC_ASSERT(payloads_of(contents) ==
            std::vector<std::string>(payloads.begin(), payloads.begin() + record));
}

RC_GTEST_PROP(Spool, AnyBytesCanBeRead, (std::string tail)) {
  const std::string bytes = std::string("JDSPOOL1\0\0\0\0\0\0\0\0", 16) + tail;
  Contents contents;
  RC_ASSERT(read(bytes, contents));
  RC_ASSERT(contents.whole_bytes <= bytes.size());
}

TEST(Unpacker, LeavesItsArgumentAloneWhereBytesAreMissing) {
  Packer packer;
  packer.put(std::uint32_t{7}).put(std::string_view("seven")).put(std::uint32_t{9});
  Unpacker unpacker(packer.bytes());
  std::uint32_t number = 0;
  std::string_view text;
  EXPECT_TRUE(unpacker.get(number));
  EXPECT_TRUE(unpacker.get(text));
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(text, "seven");
  EXPECT_TRUE(unpacker.get(number));
  EXPECT_FALSE(unpacker.get(number));
  EXPECT_EQ(number, 9u);
  Unpacker torn(packer.bytes().substr(4, 6));  // a string of five of which two are there
  EXPECT_FALSE(torn.get(text));
  EXPECT_EQ(text, "seven");
}

TEST(Writer, TakesRecordsFromSeveralThreads) {
  const Path path;
  constexpr int kThreads = 4, kEach = 2000;
  {
    Writer writer;
    ASSERT_TRUE(writer.open(path.name));
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < kEach; ++i)
          writer.append(Type::fact, std::to_string(t) + std::string(30, '.'));
      });
  }
  const std::string bytes = path.text();
  Contents contents;
  ASSERT_TRUE(read(bytes, contents));
  EXPECT_FALSE(contents.torn);
  EXPECT_EQ(contents.records.size(), std::size_t{kThreads} * kEach);
}

TEST(Writer, AMissingFolderIsNotOk) {
  Writer writer;
  EXPECT_FALSE(writer.open("/nowhere/at/all.spool"));
  writer.append(Type::fact, "lost");
  writer.flush();
  EXPECT_FALSE(writer.ok());
}

TEST(Writer, AFullDeviceIsNotOk) {
  Writer writer;
  EXPECT_FALSE(writer.open("/dev/full"));
}

// In a child, since the limit holds for a whole process.
int in_child(auto body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

// However the limit falls, the host lives, and the file says that something is missing.
TEST(Writer, AFullDiskIsSurvivedAndTold) {
  for (rlim_t limit = kHeaderBytes; limit < 3700; limit += 97) {
    const Path path;
    const int status = in_child([&] {
      const rlimit size{limit, limit};
      setrlimit(RLIMIT_FSIZE, &size);
      Writer writer;
      writer.open(path.name);
      for (int i = 0; i < 30; ++i) {
        writer.append(Type::step, std::string(100 + static_cast<std::size_t>(i), 's'));
        if (i % 5 == 4) writer.flush();
      }
      _exit(writer.ok() ? 7 : 0);
    });
    EXPECT_EQ(status, 0) << "limit " << limit;
    const std::string bytes = path.text();
    Contents contents;
    ASSERT_TRUE(read(bytes, contents)) << "limit " << limit;
    const bool told = !contents.records.empty() && contents.records.back().type == Type::fact;
    EXPECT_TRUE(told || contents.torn || contents.records.empty()) << "limit " << limit;
    EXPECT_FALSE(told && contents.torn) << "limit " << limit;
    if (limit > 500) {
      EXPECT_GE(contents.records.size() - told, 1u);
    }
  }
}

TEST(Writer, LeavesADescriptorAloneThatTheHostReusedAndGoesOn) {
  const Path path, other;
  const int status = in_child([&] {
    Writer writer;
    writer.open(path.name);
    for (int fd = 3; fd < 128; ++fd) ::close(fd);
    while (std::fopen(other.name, "w") != nullptr && ::dup(0) < 32) continue;
    writer.append(Type::fact, "not for the other");
    writer.flush();
    _exit(writer.ok() ? 0 : 7);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(other.text(), "");
  const std::string bytes = path.text();
  Contents contents;
  ASSERT_TRUE(read(bytes, contents));
  EXPECT_EQ(payloads_of(contents), std::vector<std::string>{"not for the other"});
}

TEST(Writer, AFileThatIsGoneIsNotOk) {
  const Path path;
  const int status = in_child([&] {
    Writer writer;
    writer.open(path.name);
    for (int fd = 3; fd < 128; ++fd) ::close(fd);
    std::remove(path.name);
    writer.append(Type::fact, "lost");
    writer.flush();
    _exit(writer.ok() ? 7 : 0);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(path.text(), "");
}

TEST(Writer, AChildNeitherWritesNorRepeatsWhatItsParentBuffered) {
  const Path path;
  Writer writer;
  ASSERT_TRUE(writer.open(path.name));
  writer.append(Type::fact, "parent");
  writer.before_fork();
  const pid_t pid = fork();
  writer.after_fork(pid == 0);
  if (pid == 0) {
    const bool off = !writer.ok();
    writer.append(Type::fact, "child");
    writer.flush();
    _exit(off ? 0 : 7);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  writer.flush();
  const std::string bytes = path.text();
  Contents contents;
  ASSERT_TRUE(read(bytes, contents));
  EXPECT_THAT(payloads_of(contents), testing::ElementsAre("parent"));
}

}  // namespace
}  // namespace joulediff::spool
