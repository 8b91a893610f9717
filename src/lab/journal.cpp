#include "lab/journal.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lab/spool_contents.h"
#include "run/names.h"

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
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) to = found->template get<T>();
  } else {
    if (found->is_number_integer()) to = found->template get<T>();
  }
}

json to_json(const Diagnostics& diagnostics) {
  json list = json::array();
  for (const Diagnostic& one : diagnostics)
    list.push_back({{"severity", run::name(one.severity)},
                    {"rule", one.rule},
                    {"message", one.message},
                    {"count", one.count},
                    {"remedy", one.remedy}});
  return list;
}

void take(const json& from, const char* key, Diagnostics& to) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_array()) return;
  to.clear();
  for (const json& each : *found) {
    if (!each.is_object()) continue;
    Diagnostic& one = to.emplace_back();
    std::string severity;
    take(each, "severity", severity);
    const auto& names = run::kNames<Severity>;
    if (const auto code = std::ranges::find(names, severity); code != names.end())
      one.severity = static_cast<Severity>(code - names.begin());
    take(each, "rule", one.rule);
    take(each, "message", one.message);
    take(each, "count", one.count);
    take(each, "remedy", one.remedy);
  }
}

void append(spool::Writer& writer, const json& entry) {
  spool::Packer packer;
  const std::string text = entry.dump(-1, ' ', false, json::error_handler_t::replace);
  writer.append(spool::Type::launch, packer.put(std::string_view(text)).bytes());
  writer.flush();
}

Nanoseconds last_reading(const std::vector<run::Series>& all) {
  Nanoseconds last = 0;
  for (const run::Series& series : all)
    if (!series.time.empty() && series.source != run::Source::external_power)  // by its own clock
      last = std::max(last, series.time.back());
  return last;
}

}  // namespace

Journal::Journal(const std::filesystem::path& folder) : folder_(folder) {
  writer_.open((folder / kJournalName).c_str());
}

void Journal::began(Nanoseconds begin, const std::string& facts, const Diagnostics& notes) {
  append(writer_, {{"begin", begin}, {"facts", parsed(facts)}, {"notes", to_json(notes)}});
}

void Journal::sampled(std::vector<Samples::Piece> fresh) {
  for (const Samples::Piece& piece : fresh) {
    const run::Series& series = piece.series;
    readings_ += series.time.size();
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
  if (!writer_.ok()) std::ranges::move(fresh, std::back_inserter(held_));
}

void Journal::diagnosed(const Diagnostics& all) {
  std::uint64_t count = 0;
  for (const Diagnostic& one : all) count += one.count;
  if (std::exchange(diagnosed_, count) != count) append(writer_, {{"diagnostics", to_json(all)}});
}

void Journal::ended(const Launched& launched) {
  append(writer_, {{"end", launched.end},
                   {"exit_status", launched.exit_status},
                   {"interrupted", launched.interrupted},
                   {"stopped", launched.stopped}});
}

std::vector<run::Series> Journal::series(Diagnostics& diagnostics) {
  std::vector<run::Series> all = read_journal(folder_).launched.series;
  // A stretch goes on where the file ended; of the piece that failed, the file may hold a part.
  using Name = std::tuple<run::Source, std::string, std::uint32_t>;
  std::map<Name, std::size_t> places;
  std::map<std::pair<run::Source, std::string>, std::uint32_t> stretches;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint32_t stretch = stretches[{all[i].source, all[i].channel}]++;
    places[{all[i].source, all[i].channel, stretch}] = i;
  }
  for (Samples::Piece& piece : held_) {
    run::Series& more = piece.series;
    const auto [place, fresh] =
        places.try_emplace({more.source, more.channel, piece.stretch}, all.size());
    if (fresh) {
      all.push_back(std::move(more));
      continue;
    }
    run::Series& series = all[place->second];
    const Nanoseconds known = series.time.empty() ? 0 : series.time.back();
    const auto from = std::ranges::upper_bound(more.time, known) - more.time.begin();
    const auto join = [from](auto& to, const auto& what) {
      if (!what.empty()) to.insert(to.end(), what.begin() + from, what.end());
    };
    join(series.value, more.value);
    join(series.uncertainty, more.uncertainty);
    join(series.time, more.time);
  }
  held_.clear();
  std::uint64_t found = 0;
  for (const run::Series& series : all) found += series.time.size();
  if (found < readings_)
    diagnostics.push_back(
        {Severity::warning, "record.readings_lost",
         fmt::format("readings of the meters were lost, as their file {} was removed or damaged "
                     "while the program ran: leave its folder alone until the run file is there",
                     kJournalName),
         readings_ - found});
  return all;
}

JournalContents read_journal(const std::filesystem::path& folder) {
  constexpr std::uint64_t kLimit = 4ull << 30;
  JournalContents journal;
  Launched& launched = journal.launched;
  launched.cut = true;
  launched.exit_status = kUnknownStatus;
  const Result<std::string> bytes = read_file((folder / kJournalName).string(), kLimit);
  if (!bytes) {
    journal.trouble = bytes.error().message;
    return journal;
  }
  Result<SpoolContents> contents = parse_spool(*bytes, 0);
  if (!contents) {
    journal.trouble = std::string(kJournalName) + ": " + contents.error().message;
    return journal;
  }
  if (contents->torn || contents->damaged_records > 0)
    journal.trouble = std::string(kJournalName) + " is damaged";
  launched.series = std::move(contents->series);
  launched.end = last_reading(launched.series);
  for (const std::string& text : contents->launches) {
    const json record = parsed(text);
    take(record, "begin", launched.begin);
    take(record, "notes", journal.notes);
    take(record, "diagnostics", launched.diagnostics);
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
