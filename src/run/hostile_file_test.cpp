// Files whose digest is right and whose contents are not: somebody made them on purpose, or another
// version of Joulediff did.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zstd.h>

#include "run/columns.h"
#include "run/database.h"
#include "run/run_file.h"
#include "run/test_runs.h"

namespace joulediff::run {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string& good_database() {
  static const std::string kDatabase = [] {
    for (std::uint64_t seed = 0;; ++seed) {
      run::Run run = RandomRun::make(seed, 20);
      const bool rich = run.blocks.size() == 2 && run.blocks[0].trace_kernels.size() > 5 &&
                        run.tensors.size() > 5 && run.stacks.size() > 2 && run.frames.size() > 2;
      if (rich) return to_database(run).value();
    }
  }();
  return kDatabase;
}

// The good database after these statements.
std::string edited(const std::string& sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &handle), SQLITE_OK);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(handle, &sqlite3_close);
  const std::string& good = good_database();
  auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(good.size()));
  std::copy(good.begin(), good.end(), bytes);
  const auto size = static_cast<sqlite3_int64>(good.size());
  EXPECT_EQ(sqlite3_deserialize(handle, "main", bytes, size, size,
                                SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE),
            SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
      << (error != nullptr ? error : "") << " in " << sql;
  EXPECT_NE(sqlite3_total_changes(handle) + (sql.find("CREATE") != std::string::npos) +
                (sql.find("DROP") != std::string::npos) + (sql.find("PRAGMA") != std::string::npos),
            0)
      << "changed nothing: " << sql;
  sqlite3_int64 length = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> out(
      sqlite3_serialize(handle, "main", &length, 0), &sqlite3_free);
  return std::string(reinterpret_cast<const char*>(out.get()), static_cast<std::size_t>(length));
}

std::string fault(std::string database) {
  const auto run = read_run_bytes(seal(std::move(database)));
  if (run) return "no fault";
  EXPECT_EQ(run.error().code, ExitCode::bad_input);
  return run.error().message;
}
std::string fault_after(const std::string& sql) {
  return fault(edited(sql));
}

TEST(HostileFile, TheGoodOneIsGood) {
  EXPECT_EQ(fault(good_database()), "no fault");
}

TEST(HostileFile, ANewerFormatSaysToUpdate) {
  EXPECT_THAT(fault_after("PRAGMA user_version = 5"), HasSubstr("update joulediff"));
  EXPECT_THAT(fault_after("PRAGMA user_version = 0"), HasSubstr("there is no format 0"));
  // So does a newer trailer, even around something that is no database to us.
  EXPECT_THAT(read_run_bytes(seal("from the future", 5)).error().message,
              HasSubstr("a newer joulediff wrote it (format 5, this one reads up to 4); update"));
  EXPECT_THAT(read_run_bytes(seal(good_database(), 0)).error().message,
              HasSubstr("its trailer contradicts the file"));
  EXPECT_THAT(read_run_bytes(seal(good_database(), 1)).error().message,
              HasSubstr("its trailer says format 1 and its database format 4"));
}

TEST(HostileFile, ADatabaseOfAnotherProgram) {
  EXPECT_THAT(fault_after("PRAGMA application_id = 7"), HasSubstr("another program"));
  EXPECT_THAT(fault(""), Not(HasSubstr("no fault")));
  EXPECT_THAT(fault("not a database"), HasSubstr("database"));
}

TEST(HostileFile, ASchemaThatIsNotOursLetterByLetter) {
  const auto refused = HasSubstr("its schema is not that of format 4");
  EXPECT_THAT(fault_after("CREATE TABLE extra(x)"), refused);
  EXPECT_THAT(fault_after("CREATE VIEW v AS SELECT 1"), refused);
  EXPECT_THAT(fault_after("CREATE INDEX i ON frame(line)"), refused);
  EXPECT_THAT(fault_after("CREATE TRIGGER t AFTER INSERT ON frame BEGIN SELECT 1; END"), refused);
  EXPECT_THAT(fault_after("CREATE VIRTUAL TABLE f USING fts5(x)"), refused);
  EXPECT_THAT(fault_after("DROP TABLE inputs"), HasSubstr("table inputs is missing"));
  EXPECT_THAT(fault_after("DROP TABLE frame; CREATE VIEW frame AS SELECT 0 AS id"), refused);
  EXPECT_THAT(fault_after("PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = "
                          "replace(sql, '\"line\" INTEGER', '\"line\" INTEGER  ') "
                          "WHERE name = 'frame'"),
              refused);
  EXPECT_THAT(fault_after("PRAGMA writable_schema = 1; UPDATE sqlite_master SET rootpage = 1 "
                          "WHERE name = 'frame'"),
              Not(HasSubstr("no fault")));
  EXPECT_THAT(fault_after("PRAGMA writable_schema = 1; UPDATE sqlite_master SET rootpage = "
                          "(SELECT rootpage FROM sqlite_master WHERE name = 'step') "
                          "WHERE name = 'frame'"),
              Not(HasSubstr("no fault")));
}

TEST(HostileFile, ValuesOfAnotherTypeOrOutOfRange) {
  EXPECT_THAT(fault_after("UPDATE frame SET line = 'x' WHERE id = 1"),
              HasSubstr("table frame, row 1: column line: a value of another type"));
  EXPECT_THAT(fault_after("UPDATE frame SET line = -1 WHERE id = 1"),
              HasSubstr("column line: -1 is out of range"));
  EXPECT_THAT(fault_after("UPDATE frame SET line = 4294967296 WHERE id = 0"),
              HasSubstr("column line: 4294967296 is out of range"));
  EXPECT_THAT(fault_after("UPDATE frame SET file = x'00' WHERE id = 1"), HasSubstr("column file"));
  EXPECT_THAT(fault_after("UPDATE operator SET phase = 3 WHERE id = 2"),
              HasSubstr("table operator, row 2: column phase: 3 is out of range"));
  EXPECT_THAT(fault_after("UPDATE operator SET view = 2 WHERE id = 2"), HasSubstr("column view"));
  EXPECT_THAT(fault_after("UPDATE operator SET stack = -2 WHERE id = 2"),
              HasSubstr("column stack"));
  EXPECT_THAT(fault_after("UPDATE tensor SET role = -1"), HasSubstr("column role"));
  EXPECT_THAT(fault_after("UPDATE tensor SET sample = 513"), HasSubstr("column sample"));
  EXPECT_THAT(fault_after("UPDATE manifest SET work_per_step = 'many'"),
              HasSubstr("column work_per_step"));
  EXPECT_THAT(fault_after("UPDATE manifest SET work_per_step = 9e999"), HasSubstr("work per step"));
  for (const char* list : {"", "[", "[1", "1,2", "[1,]", "[,1]", "[1 ]", "[-1]", "[4294967295]",
                           "[99999999999999999999]", "[1]x", "[1][2]", "[x]"}) {
    EXPECT_THAT(
        fault_after("UPDATE operator SET inputs = '" + std::string(list) + "' WHERE id = 1"),
        HasSubstr("table operator, row 1: column inputs: not a list of numbers"))
        << list;
  }
}

TEST(HostileFile, RowsThatAreMissingOrTwice) {
  EXPECT_THAT(fault_after("DELETE FROM manifest"), HasSubstr("table manifest: not exactly one"));
  EXPECT_THAT(fault_after("DELETE FROM frame WHERE id = 1"),
              HasSubstr("table frame, row 1: its id is out of order"));
  EXPECT_THAT(fault_after("UPDATE frame SET id = -5 WHERE id = 0"), HasSubstr("out of order"));
  EXPECT_THAT(fault_after("INSERT INTO fact SELECT id + 1, key, value FROM fact ORDER BY id DESC "
                          "LIMIT 1"),
              HasSubstr("is there twice"));
  EXPECT_THAT(fault_after("UPDATE step SET block = 7"), HasSubstr("there is no block 7"));
  EXPECT_THAT(fault_after("UPDATE replay SET block = 7"), HasSubstr("there is no block 7"));
}

TEST(HostileFile, SeriesThatContradictTheirRows) {
  EXPECT_THAT(fault_after("UPDATE series SET block = 9"), HasSubstr("there is no such block"));
  EXPECT_THAT(fault_after("UPDATE series SET records = 0x7fffffffffffffff WHERE id = 0"),
              HasSubstr("more records than a file may hold"));
  EXPECT_THAT(fault_after("UPDATE series SET records = -1 WHERE id = 0"),
              HasSubstr("more records than a file may hold"));
  EXPECT_THAT(fault_after("UPDATE series SET records = 100000000"),
              HasSubstr("more records than a file may hold"));
  EXPECT_THAT(fault_after("UPDATE series SET records = records + 1 WHERE id = 0"),
              HasSubstr("table series, row 0: chunk 0 is not its next chunk"));
  EXPECT_THAT(fault_after("UPDATE series SET kind = 2 WHERE id = 0"), HasSubstr("series, row 0"));
  EXPECT_THAT(fault_after("DELETE FROM chunk WHERE id = (SELECT max(id) FROM chunk)"),
              HasSubstr("chunks are missing"));
  EXPECT_THAT(fault_after("INSERT INTO chunk SELECT max(id) + 1, series, \"column\", records, data "
                          "FROM chunk"),
              HasSubstr("it belongs to no series"));
  EXPECT_THAT(fault_after("UPDATE chunk SET data = x'' WHERE id = 1"), HasSubstr("chunk 1"));
  EXPECT_THAT(fault_after("UPDATE chunk SET data = zeroblob(1000) WHERE id = 1"),
              HasSubstr("chunk 1"));
  EXPECT_THAT(fault_after("DELETE FROM sample"), HasSubstr("is missing"));
  EXPECT_THAT(fault_after("UPDATE sample SET records = records + 1"), HasSubstr("sample chunk"));
  EXPECT_THAT(fault_after("UPDATE sample SET data = substr(data, 1, length(data) - 1)"),
              HasSubstr("sample chunk"));
}

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return out;
}

std::string frame_of(const std::string& raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 1));
  return out;
}

// 64 MB of zeros in a few kilobytes: refused before anything of that size is allocated.
TEST(HostileFile, ABombIsNotInflated) {
  const std::string bomb = frame_of(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 10000u);
  EXPECT_THAT(fault_after("UPDATE chunk SET data = x'" + hex_of(bomb) + "' WHERE id = 0"),
              HasSubstr("chunk 0"));
  EXPECT_THAT(fault_after("UPDATE sample SET data = x'" + hex_of(bomb) + "' WHERE id = 0"),
              HasSubstr("sample chunk"));
}

TEST(Columns, RefuseWhatIsNoChunk) {
  std::vector<std::int64_t> out;
  EXPECT_FALSE(decode_integers("", 1, {}, out));
  EXPECT_FALSE(decode_integers("garbage", 1, {}, out));
  EXPECT_FALSE(decode_integers(frame_of("\x80"), 1, {}, out));                   // varint cut
  EXPECT_FALSE(decode_integers(frame_of(std::string(10, '\x80')), 1, {}, out));  // never ends
  EXPECT_FALSE(decode_integers(frame_of("ab"), 1, {}, out));                     // one too many
  EXPECT_FALSE(decode_integers(frame_of("a"), 2, {}, out));                      // one too few
  EXPECT_FALSE(decode_integers(frame_of("a"), kChunkRecords + 1, {}, out));
}

TEST(Columns, KeepExtremes) {
  const std::vector<std::int64_t> values{INT64_MIN, INT64_MAX, 0, -1, INT64_MAX, INT64_MIN, 1};
  const std::vector<std::int64_t> contexts{0, 1, 0, 1, 2, 2, -5};
  for (const auto& context : {std::vector<std::int64_t>{}, contexts}) {
    std::vector<std::int64_t> out;
    ASSERT_TRUE(decode_integers(encode_integers(values, context), values.size(), context, out));
    EXPECT_EQ(out, values);
  }
}

// Bytes of the database changed under a right digest: an error or a valid run, never a crash.
TEST(HostileFile, DamageUnderARightDigest) {
  std::string database = good_database();
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    const std::size_t at = random() % database.size();
    const char before = database[at];
    database[at] = static_cast<char>(random());
    const auto run = read_run_bytes(seal(database));
    if (run) {
      EXPECT_TRUE(validate(*run));
    }
    database[at] = before;
  }
}

}  // namespace
}  // namespace joulediff::run
