#include "lab/journal.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lab/spool_contents.h"

namespace joulediff::lab {
namespace {

using nlohmann::json;

constexpr std::int64_t kNotStated = -1;  // an uncertainty

json parsed(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_object() ? value : json::object();
}

template <class T>
void take(const json& from, const char* key, T& to) {
  const auto found = from.find(key);
  if (found == from.end()) return;
  if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) to = found->template get<T>();
  } else {
    if (found->is_number_integer()) to = found->template get<T>();
  }
}

Nanoseconds last_reading(const std::vector<run::Series>& all) {
  Nanoseconds last = 0;
  for (const run::Series& series : all)
    if (!series.time.empty()) last = std::max(last, series.time.back());
  return last;
}

}  // namespace

Journal::Journal(const std::filesystem::path& folder) {
  writer_.open((folder / kJournalName).c_str());
}

void Journal::began(Nanoseconds begin, const std::string& facts) {
  spool::Packer packer;
  const std::string text = json{{"begin", begin}, {"facts", parsed(facts)}}.dump();
  writer_.append(spool::Type::launch, packer.put(std::string_view(text)).bytes());
  writer_.flush();
}

void Journal::sampled(const std::vector<Samples::Piece>& fresh) {
  for (const Samples::Piece& piece : fresh) {
    const run::Series& series = piece.series;
    spool::Packer packer;
    packer.put(static_cast<std::uint32_t>(series.source))
        .put(piece.stretch)
        .put(std::string_view(series.channel));
    for (std::size_t i = 0; i < series.time.size(); ++i)
      packer.put(spool::Reading{series.time[i], series.value[i],
                                series.uncertainty.empty() ? kNotStated : series.uncertainty[i]});
    writer_.append(spool::Type::series, packer.bytes());
  }
  writer_.flush();
}

void Journal::ended(const Launched& launched) {
  spool::Packer packer;
  const json end = {{"end", launched.end},
                    {"exit_status", launched.exit_status},
                    {"interrupted", launched.interrupted},
                    {"stopped", launched.stopped}};
  const std::string text = end.dump();
  writer_.append(spool::Type::launch, packer.put(std::string_view(text)).bytes());
  writer_.flush();
}

JournalContents read_journal(const std::filesystem::path& folder) {
  constexpr std::uint64_t kLimit = 1ull << 30;
  JournalContents journal;
  Launched& launched = journal.launched;
  launched.cut = true;
  launched.exit_status = kUnknownStatus;
  const Result<std::string> bytes = read_file((folder / kJournalName).string(), kLimit);
  if (!bytes) return journal;
  Result<SpoolContents> contents = parse_spool(*bytes, 0);
  if (!contents) return journal;
  launched.series = std::move(contents->series);
  launched.end = last_reading(launched.series);
  for (const std::string& text : contents->launches) {
    const json record = parsed(text);
    take(record, "begin", launched.begin);
    take(record, "interrupted", launched.interrupted);
    take(record, "stopped", launched.stopped);
    take(record, "exit_status", launched.exit_status);
    take(record, "end", launched.end);
    launched.cut = launched.cut && !record.contains("end");
    if (record.contains("facts")) journal.facts = record["facts"].dump();
  }
  return journal;
}

}  // namespace joulediff::lab
