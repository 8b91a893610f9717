// Tables are made from the lists of fields.h (`row.h`). Every table has the ids 0, 1, 2, ... in
// order: a repeated or missing row, or a page that a hostile file links twice, breaks that order
// and is seen. The bytes are opened in memory, read-only, with everything switched off that a
// database could use to act: triggers, views, extensions, attached files, functions in its schema.
// Before any table is read its schema must be ours letter by letter.
#include "run/database.h"

#include <memory>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "base/format.h"
#include "run/row.h"
#include "run/tables.h"

namespace joulediff::run {

namespace {

using run::fields;  // also of records that live outside this namespace

template <class T>
Declarer declared(std::uint32_t version = kFormatVersion) {
  Declarer declarer(version);
  const T record{};
  fields(declarer, record);
  return declarer;
}

template <class T>
void write_rows(SQLite::Database& database, const char* table, const std::vector<T>& list) {
  std::string sql = fmt::format("INSERT INTO \"{}\" VALUES(?", table);
  for (std::size_t i = declared<T>().count(); i > 0; --i) sql += ",?";
  SQLite::Statement insert(database, sql + ")");
  for (std::size_t i = 0; i < list.size(); ++i) {
    Binder binder(insert, i);
    fields(binder, list[i]);
    insert.exec();
    insert.reset();
    insert.clearBindings();
  }
}

template <class T>
Status read_rows(SQLite::Database& database, std::uint32_t version, const char* table,
                 std::vector<T>& list) {
  SQLite::Statement select(database, fmt::format("SELECT * FROM \"{}\" ORDER BY id", table));
  while (select.executeStep()) {
    Reader reader(select, list.size(), version);
    T& record = list.emplace_back();
    fields(reader, record);
    if (!reader.fault().empty()) {
      return fail(ExitCode::bad_input,
                  fmt::format("table {}, row {}: {}", table, list.size() - 1, reader.fault()));
    }
  }
  return {};
}

// What a hostile database may cost: work grows with its size, never without bound.
struct Budget {
  std::int64_t left = 0;
  static constexpr int kOperations = 1000;
  static int spend(void* budget) { return --static_cast<Budget*>(budget)->left < 0; }
};

void restrain(sqlite3* handle, Budget& budget) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 64 << 10);
  sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, 64);
  sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 16);
  sqlite3_limit(handle, SQLITE_LIMIT_COMPOUND_SELECT, 1);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(handle, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_progress_handler(handle, Budget::kOperations, &Budget::spend, &budget);
}

// The version of the file's format.
Result<std::uint32_t> check_schema(SQLite::Database& database) {
  const auto bad = [](std::string message) {
    return fail(ExitCode::bad_input, std::move(message));
  };
  if (database.execAndGet("PRAGMA application_id").getInt() != kApplicationId) {
    return bad("it is an SQLite database of another program");
  }
  const std::int64_t version = database.execAndGet("PRAGMA user_version").getInt64();
  if (version > kFormatVersion) {
    return bad(
        fmt::format("a newer joulediff wrote it (format {}, this one reads up to {}); "
                    "update joulediff to read it",
                    version, kFormatVersion));
  }
  if (version < 1) return bad(fmt::format("there is no format {}", version));
  const std::vector<std::string> tables = schema(static_cast<std::uint32_t>(version));
  SQLite::Statement select(database, "SELECT type, sql FROM sqlite_master ORDER BY rowid");
  std::size_t next = 0;
  while (select.executeStep()) {
    const std::string sql = select.getColumn(1).getString();
    if (next == tables.size() || select.getColumn(0).getString() != "table" ||
        sql != tables[next]) {
      return bad(fmt::format("its schema is not that of format {} (at entry {})", version, next));
    }
    ++next;
  }
  if (next != tables.size()) return bad(fmt::format("its table {} is missing", kTables[next]));
  return static_cast<std::uint32_t>(version);
}

}  // namespace

std::vector<std::string> schema(std::uint32_t version) {
  std::vector<std::string> list;
  Tables tables;
  each_table(tables, [&]<class T>(const char* table, std::vector<T>&) {
    list.push_back(fmt::format("CREATE TABLE \"{}\"(\"id\" INTEGER PRIMARY KEY{})", table,
                               declared<T>(version).columns()));
  });
  list.resize(table_count(version));
  return list;
}

Result<std::string> to_database(const Run& run) try {
  Tables tables = tables_of(run);
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database.exec("PRAGMA page_size = 1024");
  database.exec("PRAGMA auto_vacuum = 0");
  database.exec("PRAGMA encoding = 'UTF-8'");
  SQLite::Transaction transaction(database);
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", kFormatVersion));
  for (const std::string& table : schema(kFormatVersion)) database.exec(table);
  each_table(tables,
             [&](const char* table, const auto& list) { write_rows(database, table, list); });
  transaction.commit();
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(
      sqlite3_serialize(database.getHandle(), "main", &size, 0), &sqlite3_free);
  if (!bytes) return fail(ExitCode::environment, "not enough memory for the run");
  return std::string(reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size));
} catch (const SQLite::Exception& error) {
  return fail(ExitCode::environment, fmt::format("the run does not fit: {}", error.what()));
}

Result<Run> from_database(std::string_view bytes, std::uint32_t version) try {
  Budget budget{.left = 10'000 + static_cast<std::int64_t>(bytes.size() / 8)};
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  sqlite3* const handle = database.getHandle();
  restrain(handle, budget);
  // SQLite takes a pointer to bytes that it may write to, and with READONLY does not.
  auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(handle, "main", data, size, size, SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK) {
    return fail(ExitCode::bad_input, "it holds no SQLite database");
  }
  database.exec("PRAGMA cell_size_check = 1");
  JD_ASSIGN(const std::uint32_t found, check_schema(database));
  if (found != version) {
    return fail(
        ExitCode::bad_input,
        fmt::format("its trailer says format {} and its database format {}", version, found));
  }
  Tables tables;
  Status status;
  std::size_t left = table_count(version);
  each_table(tables, [&](const char* table, auto& list) {
    if (left == 0) return;
    --left;
    if (status) status = read_rows(database, version, table, list);
  });
  JD_TRY(std::move(status));
  return run_of(std::move(tables), version);
} catch (const SQLite::Exception& error) {
  return fail(ExitCode::bad_input, fmt::format("its database is damaged: {}", error.what()));
}

}  // namespace joulediff::run
