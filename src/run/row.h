// A row of a table, by three visitors of its record's fields: one declares columns, one binds
// values, one reads them back and distrusts each.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "run/names.h"
#include "run/tables.h"

namespace joulediff::run {

template <class T>
concept Coded = std::is_enum_v<T>;

class Declarer {
 public:
  explicit Declarer(std::uint32_t version) : version_(version) {}
  std::uint32_t version() const { return version_; }
  void operator()(const char* name, const std::string&) { column(name, "TEXT NOT NULL"); }
  void operator()(const char* name, const Blob&) { column(name, "BLOB NOT NULL"); }
  void operator()(const char* name, double) { column(name, "REAL NOT NULL"); }
  template <std::integral T>
  void operator()(const char* name, T) {
    column(name, "INTEGER NOT NULL");
  }
  template <Coded T>
  void operator()(const char* name, T) {
    column(name, "INTEGER NOT NULL");
  }
  template <class Tag>
  void operator()(const char* name, Id<Tag>) {
    column(name, "INTEGER");
  }
  template <class T>
  void operator()(const char* name, const std::vector<T>&) {  // "[1,2,3]"
    column(name, "TEXT NOT NULL");
  }
  void operator()(const char* name, const std::vector<float>&) {  // how many; table sample has them
    column(name, "INTEGER NOT NULL");
  }
  template <std::size_t N>
  void operator()(const char* name, const std::array<std::uint32_t, N>&) {
    for (std::size_t i = 0; i < N; ++i) column(fmt::format("{}_{}", name, i), "INTEGER NOT NULL");
  }
  const std::string& columns() const { return columns_; }
  std::size_t count() const { return count_; }

 private:
  void column(std::string_view name, const char* type) {
    columns_ += fmt::format(", \"{}\" {}", name, type);
    ++count_;
  }
  const std::uint32_t version_;
  std::string columns_;
  std::size_t count_ = 0;
};

inline std::int64_t number(std::int64_t value) {
  return value;
}
template <class Tag>
std::int64_t number(Id<Tag> id) {
  return id.value;
}

class Binder {
 public:
  Binder(SQLite::Statement& statement, std::size_t id) : statement_(statement) {
    (*this)("id", static_cast<std::int64_t>(id));
  }
  void operator()(const char*, const std::string& text) { statement_.bindNoCopy(next_++, text); }
  void operator()(const char*, const Blob& blob) {
    statement_.bindNoCopy(next_++, blob.bytes.data(), static_cast<int>(blob.bytes.size()));
  }
  void operator()(const char*, double value) { statement_.bind(next_++, value); }
  template <std::integral T>
  void operator()(const char*, T value) {  // uint64 by its bits
    statement_.bind(next_++, static_cast<std::int64_t>(value));
  }
  template <Coded T>
  void operator()(const char*, T value) {
    statement_.bind(next_++, static_cast<std::int64_t>(value));
  }
  template <class Tag>
  void operator()(const char*, Id<Tag> id) {
    if (id.valid()) statement_.bind(next_, static_cast<std::int64_t>(id.value));
    ++next_;
  }
  template <class T>
  void operator()(const char*, const std::vector<T>& list) {
    std::string text = "[";
    for (const T& element : list) {
      if (text.size() > 1) text += ',';
      fmt::format_to(std::back_inserter(text), "{}", number(element));
    }
    statement_.bind(next_++, text + "]");
  }
  void operator()(const char* name, const std::vector<float>& sample) {
    (*this)(name, static_cast<std::int64_t>(sample.size()));
  }
  template <std::size_t N>
  void operator()(const char* name, const std::array<std::uint32_t, N>& values) {
    for (const std::uint32_t value : values) (*this)(name, value);
  }

 private:
  SQLite::Statement& statement_;
  int next_ = 1;
};

// Reads the columns of one row; the first fault is kept, and nothing is read after it.
class Reader {
 public:
  Reader(SQLite::Statement& statement, std::size_t id, std::uint32_t version)
      : statement_(statement), version_(version) {
    std::int64_t found = -1;
    (*this)("id", found);
    if (fault_.empty() && found != static_cast<std::int64_t>(id)) {
      fault_ = "its id is out of order";
    }
  }
  const std::string& fault() const { return fault_; }
  std::uint32_t version() const { return version_; }

  void operator()(const char* name, std::string& text) {
    if (has(name, SQLITE_TEXT)) text = statement_.getColumn(next_ - 1).getString();
  }
  void operator()(const char* name, Blob& blob) {
    if (has(name, SQLITE_BLOB)) blob.bytes = statement_.getColumn(next_ - 1).getString();
  }
  void operator()(const char* name, double& value) {
    if (has(name, SQLITE_FLOAT)) value = statement_.getColumn(next_ - 1).getDouble();
  }
  template <std::integral T>
  void operator()(const char* name, T& value) {
    const std::int64_t found = integer(name);
    if constexpr (sizeof(T) < sizeof found) {
      const bool fits =
          std::in_range<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>(found) &&
          (!std::is_same_v<T, bool> || found <= 1);
      if (!fits) return out_of_range(name, found);
    }
    value = static_cast<T>(found);
  }
  template <Coded T>
  void operator()(const char* name, T& value) {
    const std::int64_t found = integer(name);
    if (found < 0 || found >= static_cast<std::int64_t>(kNames<T>.size())) {
      return out_of_range(name, found);
    }
    value = static_cast<T>(found);
  }
  template <class Tag>
  void operator()(const char* name, Id<Tag>& id) {
    if (fault_.empty() && statement_.getColumn(next_).isNull()) {
      ++next_;
      return;
    }
    const std::int64_t found = integer(name);
    if (found < 0 || found >= std::int64_t{Id<Tag>::kNone}) return out_of_range(name, found);
    id = Id<Tag>(static_cast<std::size_t>(found));
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& list) {
    std::string text;
    (*this)(name, text);
    if (fault_.empty() && !parse(text, list)) fault(name, "not a list of numbers, or out of range");
  }
  void operator()(const char* name, std::vector<float>& sample) {
    const std::int64_t found = integer(name);
    if (found < 0 || found > static_cast<std::int64_t>(value::kSampleLimit)) {
      return out_of_range(name, found);
    }
    sample.resize(static_cast<std::size_t>(found));
  }
  template <std::size_t N>
  void operator()(const char* name, std::array<std::uint32_t, N>& values) {
    for (std::uint32_t& value : values) (*this)(name, value);
  }

 private:
  void fault(const char* name, std::string_view why) {
    if (fault_.empty()) fault_ = fmt::format("column {}: {}", name, why);
  }
  void out_of_range(const char* name, std::int64_t found) {
    fault(name, fmt::format("{} is out of range", found));
  }
  bool has(const char* name, int type) {
    if (!fault_.empty()) return false;
    if (statement_.getColumn(next_++).getType() == type) return true;
    fault(name, "a value of another type, or none");
    return false;
  }
  std::int64_t integer(const char* name) {
    return has(name, SQLITE_INTEGER) ? statement_.getColumn(next_ - 1).getInt64() : 0;
  }
  template <class T>
  static bool parse(std::string_view text, std::vector<T>& list) {
    if (!text.starts_with('[') || !text.ends_with(']')) return false;
    if (text == "[]") return true;
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    while (*at != ']') {
      std::int64_t value = 0;
      const auto [after, error] = std::from_chars(at + 1, end, value);
      if (error != std::errc() || after == end || (*after != ',' && *after != ']')) return false;
      at = after;
      if constexpr (std::is_same_v<T, std::int64_t>) {
        list.push_back(value);
      } else {
        if (value < 0 || value >= std::int64_t{T::kNone}) return false;
        list.emplace_back(static_cast<std::size_t>(value));
      }
    }
    return at + 1 == end;
  }

  SQLite::Statement& statement_;
  const std::uint32_t version_;
  int next_ = 0;
  std::string fault_;
};

}  // namespace joulediff::run
