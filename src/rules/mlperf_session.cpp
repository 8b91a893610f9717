// Checks of what client and server wrote down about one session.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

using run::Inference;
using run::Message;
using run::Session;

constexpr const char* kRerun = "run the session again with unchanged tools";
constexpr const char* kAsLeft = "file the session as the tools left it";

bool there(const Inference& i) {
  return !i.client.file.empty() && !i.server.file.empty();
}

MlperfCheck missing(std::string id) {
  return {std::move(id),   Checked::failed,
          Checked::failed, "client.json or server.json is missing",
          kAsLeft,         {}};
}

MlperfCheck sources(std::string id, const Session& session, const Session& other,
                    const KnownSources& known) {
  if (session.file.empty() || other.file.empty()) return missing(std::move(id));
  MlperfCheck check = passed(std::move(id), Checked::unchecked);
  if (session.sources.empty()) {
    check.official = check.ours = Checked::failed;
    check.message = fmt::format("{} names no source files", session.file);
    check.remedy = kRerun;
    return check;
  }
  for (const auto& [file, hash] : session.sources) {
    const auto found = other.sources.find(file);
    if (found == other.sources.end() || found->second == hash) continue;
    check.ours = Checked::failed;
    check.message = fmt::format("{} is not the same file on both machines", file);
    check.remedy = "install one release of the tools on both";
  }
  if (known.empty()) {
    if (check.message.empty())
      check.message = "not held against the released sources: give --sources FILE";
    return check;
  }
  const bool released = std::ranges::find(known, session.sources) != known.end();
  check.official = released ? Checked::passed : Checked::failed;
  if (!released) {
    check.ours = Checked::failed;
    check.message = fmt::format("the sources that {} names are no release", session.file);
    check.remedy = kRerun;
  }
  return check;
}

// Replies to commands that begin with `command`: the first that is not as expected.
const Message* unexpected(const std::vector<Message>& messages, std::string_view command,
                          std::string_view reply) {
  std::size_t stops = 0;
  for (const Message& message : messages) {
    if (!message.command.starts_with(command)) continue;
    // The third Stop finds nothing to stop.
    if (command == "Stop" && ++stops > 2) reply = "Error: no measurement to stop";
    if (message.reply != reply) return &message;
  }
  return nullptr;
}

// The part of a reply between its commas; empty where there are not so many.
std::string field(const std::string& text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0; --index) {
    const std::size_t comma = text.find(',', at);
    if (comma == std::string::npos) return {};
    at = comma + 1;
  }
  return text.substr(at, text.find(',', at) - at);
}

std::string reply_to(const std::vector<Message>& messages, std::string_view command) {
  for (const Message& message : messages)
    if (message.command == command) return message.reply;
  return {};
}

std::vector<std::string> commands(const std::vector<Message>& messages, std::string_view prefix) {
  std::vector<std::string> list;
  for (const Message& message : messages)
    if (message.command.starts_with(prefix)) list.push_back(message.command);
  return list;
}

// "Ranges,0,0.500000,0,300.000000": automatic, or what was set before.
std::string initial(const std::string& ranges, std::size_t at) {
  return field(ranges, at) == "0" ? field(ranges, at + 1) : "Auto";
}

// The release that a round asked for: 1.11.1 since 2025, 1.10.0 since 2022, 1.9 before.
bool version_of_its_time(const std::string& version, const std::string& session_name) {
  const std::string year = session_name.substr(0, 4);
  if (year >= "2025" || year.empty()) return version == "1.11.1";
  if (year >= "2022") return version == "1.10.0" || version == "1.11.1";
  return version.starts_with("1.9.") || version == "1.10.0";
}

constexpr std::array<std::string_view, 11> kModels{"YokogawaWT210",
                                                   "YokogawaWT500",
                                                   "YokogawaWT500_multichannel",
                                                   "YokogawaWT310",
                                                   "YokogawaWT310E",
                                                   "YokogawaWT330",
                                                   "YokogawaWT330E",
                                                   "YokogawaWT330_multichannel",
                                                   "YokogawaWT210_DC",
                                                   "YokogawaWT310_DC",
                                                   "YokogawaWT330_DC"};
constexpr std::array kDevices{8, 35, 48, 49, 52, 77, 508, 549, 586};

}  // namespace

MlperfCheck client_sources(const Inference& i, const KnownSources& known) {
  return sources("mlperf.client_sources", i.client, i.server, known);
}
MlperfCheck server_sources(const Inference& i, const KnownSources& known) {
  return sources("mlperf.server_sources", i.server, i.client, known);
}

MlperfCheck ptd_replies(const Inference& i) {
  MlperfCheck check = passed("mlperf.ptd_replies");
  const auto& messages = i.server.ptd_messages;
  const auto fail = [&](std::string message, std::string remedy) {
    check.official = check.ours = Checked::failed;
    check.message = std::move(message);
    check.remedy = std::move(remedy);
    return check;
  };
  if (messages.empty()) return fail("server.json holds no exchange with PTDaemon", kAsLeft);
  const std::string identity = reply_to(messages, "Identify");
  const std::string model = field(identity, 0);
  const std::size_t at = identity.find("version=");
  const std::size_t begin = at == std::string::npos ? identity.size() : at + 8;
  const std::string version = identity.substr(begin, identity.find('-', begin) - begin);
  if (std::ranges::find(kModels, model) == kModels.end())
    return fail(fmt::format("the meter is \"{}\"", truncated(model, 40)),
                "use a meter of the list that SPEC accepts");
  if (!version_of_its_time(version, i.server.name))
    return fail(fmt::format("PTDaemon is version {}", version.empty() ? "unknown" : version),
                "use the version that the round asks for (1.11.1 since 2025)");
  constexpr std::pair<std::string_view, std::string_view> kReplies[] = {
      {"SR,A", "Range A changed"},
      {"SR,V", "Range V changed"},
      {"Go,1000,",
       "Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples"},
      {"Stop", "Stopping untimed measurement"}};
  for (const auto& [command, reply] : kReplies)
    if (const Message* wrong = unexpected(messages, command, reply))
      return fail(fmt::format("to {} the daemon replied \"{}\"", wrong->command,
                              truncated(wrong->reply, 60)),
                  kRerun);
  const std::string ranges = reply_to(messages, "RR");
  for (const auto& [prefix, index] : {std::pair("SR,A", 1), std::pair("SR,V", 3)}) {
    const std::vector<std::string> set = commands(messages, prefix);
    const std::string wanted =
        fmt::format("{},{}", prefix, initial(ranges, static_cast<std::size_t>(index)));
    // Two settings of the range in ranging are known to occur: the last is the restoring one.
    if (set.size() < 3 || set.back() != wanted)
      return fail(fmt::format("the range is left as {}, it was {}",
                              set.empty() ? "unknown" : set.back(), wanted),
                  kRerun);
  }
  return check;
}

MlperfCheck uuids(const Inference& i) {
  if (!there(i)) return missing("mlperf.uuid");
  MlperfCheck check = passed("mlperf.uuid");
  if (!i.client.client_uuid.empty() && i.client.client_uuid == i.server.client_uuid &&
      !i.client.server_uuid.empty() && i.client.server_uuid == i.server.server_uuid)
    return check;
  check.official = check.ours = Checked::failed;
  check.message = "client.json and server.json are of different sessions (UUID)";
  check.remedy = kAsLeft;
  return check;
}

MlperfCheck session_names(const Inference& i) {
  if (!there(i)) return missing("mlperf.session");
  MlperfCheck check = passed("mlperf.session");
  if (!i.client.name.empty() && i.client.name == i.server.name) return check;
  check.official = check.ours = Checked::failed;
  check.message = fmt::format("the client's session is \"{}\", the server's \"{}\"", i.client.name,
                              i.server.name);
  check.remedy = kAsLeft;
  return check;
}

MlperfCheck phase_clocks(const Inference& i) {
  if (!there(i)) return missing("mlperf.clocks");
  MlperfCheck check = passed("mlperf.clocks");
  double worst = 0;
  for (const char* mode : {"ranging", "testing"}) {
    const auto c = i.client.phases.find(mode), s = i.server.phases.find(mode);
    const bool none = c == i.client.phases.end() || s == i.server.phases.end();
    if (none || c->second.size() != s->second.size() || c->second.size() < 4) {
      check.official = check.ours = Checked::failed;
      check.message = fmt::format("client and server have {} and {} instants of {}",
                                  c == i.client.phases.end() ? 0 : c->second.size(),
                                  s == i.server.phases.end() ? 0 : s->second.size(), mode);
      check.remedy = kAsLeft;
      return check;
    }
    for (std::size_t k = 0; k < c->second.size(); ++k)
      worst = std::max(worst, std::abs(c->second[k].unix_time - s->second[k].unix_time));
  }
  check.official = worst > 0.8 ? Checked::failed : Checked::passed;
  check.ours = worst > 0.8 ? Checked::failed : worst > 0.4 ? Checked::warned : Checked::passed;
  if (worst <= 0.4) return check;
  check.message =
      fmt::format("the clocks of client and server are {} apart", format(Seconds(worst)));
  check.remedy = "synchronise both with one NTP server";
  if (check.official != check.ours) check.why = "the rules allow 400 ms, the checker 800 ms";
  return check;
}

MlperfCheck phase_windows(const Inference& i) {
  if (!there(i)) return missing("mlperf.windows");
  MlperfCheck check = passed("mlperf.windows");
  for (const auto& [mode, part] :
       {std::pair("ranging", &i.ranging), std::pair("testing", &i.testing)}) {
    const run::LoadGenLog& log = part->loadgen;
    if (!log.power_begin || !log.power_end) {
      check.official = check.ours = Checked::failed;
      check.message = fmt::format("LoadGen marks no {} of {}",
                                  log.power_begin ? "power_end" : "power_begin", mode);
      check.remedy = "file the whole mlperf_log_detail.txt";
      return check;
    }
    const auto phases = i.client.phases.find(mode);
    if (phases == i.client.phases.end() || phases->second.size() < 4) continue;  // mlperf.clocks
    const double from = phases->second[1].unix_time, to = phases->second[2].unix_time;
    const double begin = unix_seconds(*log.power_begin), end = unix_seconds(*log.power_end);
    const auto inside = [&](double t) { return from < t && t < to; };
    if (inside(begin) && inside(end)) continue;
    check.ours = Checked::failed;
    const bool hack =
        (inside(begin) || inside(begin - 3600)) && (inside(end) || inside(end - 3600));
    if (!hack) check.official = Checked::failed;
    // Whole hours and the workload would be inside: a clock in another time zone.
    const double hours = std::round((begin - from) / 3600);
    const bool zone = hours != 0 && inside(begin - hours * 3600) && inside(end - hours * 3600);
    check.message =
        zone ? fmt::format(
                   "LoadGen's clock is {:+.0f} h off the client's in {}: daylight saving or "
                   "a time zone",
                   hours, mode)
             : fmt::format(
                   "LoadGen's window of {} lies outside the client's workload phase "
                   "({:.3f} to {:.3f} s of {:.3f} s)",
                   mode, begin - from, end - from, to - from);
    check.remedy = zone ? "run everything in UTC" : kAsLeft;
    if (hack) check.why = "the checker takes an hour off before it compares";
  }
  return check;
}

MlperfCheck durations(const Inference& i) {
  MlperfCheck check = passed("mlperf.durations");
  const auto span = [](const run::LoadGenLog& log) -> std::optional<double> {
    if (!log.power_begin || !log.power_end) return {};
    return to_seconds(*log.power_end - *log.power_begin).value;
  };
  const auto ranging = span(i.ranging.loadgen), testing = span(i.testing.loadgen);
  if (!ranging || !testing) {
    check.official = Checked::failed;
    check.ours = Checked::unchecked;
    check.message = "a window is not marked";
    check.remedy = "file the whole mlperf_log_detail.txt";
    return check;
  }
  if (*testing > 0 && *testing >= 0.5 * *ranging) return check;
  check.official = check.ours = Checked::warned;
  check.message = fmt::format("the testing run takes {}, the ranging run {}",
                              short_time(Seconds(*testing)), short_time(Seconds(*ranging)));
  check.remedy = "run both for as long";
  return check;
}

MlperfCheck messages(const Inference& i) {
  if (!there(i)) return missing("mlperf.messages");
  MlperfCheck check = passed("mlperf.messages");
  const auto fail = [&](std::string message) {
    check.official = check.ours = Checked::failed;
    check.message = std::move(message);
    check.remedy = kAsLeft;
    return check;
  };
  const auto &c = i.client.messages, &s = i.server.messages;
  // A server that was told to stop before has heard one more.
  const std::size_t extra = s.size() == c.size() + 1 && s.size() > 1 && s[1].command == "stop";
  if (c.empty() || c.size() + extra != s.size())
    return fail(fmt::format("the client sent {} messages, the server had {}", c.size(), s.size()));
  for (std::size_t k = 0; k < c.size(); ++k) {
    const Message &x = c[k], &y = s[k + (k > 0 ? extra : 0)];
    if (x.command != y.command || (x.command != "time" && x.reply != y.reply))
      return fail(fmt::format("message {} differs: \"{}\" against \"{}\"", k + 1,
                              truncated(x.command, 40), truncated(y.command, 40)));
  }
  constexpr std::string_view kClient = "mlcommons/power client v",
                             kServer = "mlcommons/power server v";
  const Message& hello = s.front();
  if (!hello.command.starts_with(kClient) || !hello.reply.starts_with(kServer) ||
      hello.command.substr(kClient.size()) != hello.reply.substr(kServer.size()))
    return fail(fmt::format("the versions differ: \"{}\" and \"{}\"", truncated(hello.command, 40),
                            truncated(hello.reply, 40)));
  return check;
}

MlperfCheck hashes(const Inference& i) {
  MlperfCheck check = passed("mlperf.hashes");
  const auto complain = [&](const std::string& what) {
    check.official = check.ours = Checked::failed;
    check.message += (check.message.empty() ? "" : "; ") + what;
    check.remedy = kAsLeft;
  };
  std::vector<std::string> absent, unlisted, changed;
  for (const char* file :
       {"power/client.log", "power/ptd_logs.txt", "power/server.log",
        "ranging/mlperf_log_detail.txt", "ranging/mlperf_log_summary.txt", "ranging/spl.txt",
        "run_1/mlperf_log_detail.txt", "run_1/mlperf_log_summary.txt", "run_1/spl.txt"}) {
    const auto there = i.files.find(file);
    const auto c = i.client.results.find(file), s = i.server.results.find(file);
    const bool listed = c != i.client.results.end() || s != i.server.results.end();
    if (there == i.files.end())
      absent.emplace_back(file);
    else if (!listed)
      unlisted.emplace_back(file);
    else if ((c != i.client.results.end() && c->second != there->second) ||
             (s != i.server.results.end() && s->second != there->second))
      changed.emplace_back(file);
  }
  for (const auto* list : {&absent, &unlisted, &changed})
    check.files.insert(check.files.end(), list->begin(), list->end());
  const auto names = [](const std::vector<std::string>& list) {
    return fmt::format("{}{}", list.front(),
                       list.size() > 1 ? fmt::format(" and {} more", list.size() - 1) : "");
  };
  if (!absent.empty()) complain(fmt::format("{} missing: {}", absent.size(), names(absent)));
  if (!unlisted.empty()) complain(fmt::format("no hash is known of {}", names(unlisted)));
  if (!changed.empty())
    complain(
        fmt::format("{} of 9 files changed since the session: {}", changed.size(), names(changed)));
  return check;
}

MlperfCheck analyzer(const Inference& i) {
  MlperfCheck check = passed("mlperf.analyzer");
  const auto fail = [&](std::string message) {
    check.official = check.ours = Checked::failed;
    check.message = std::move(message);
    check.remedy = "configure the meter as the rules have it";
    return check;
  };
  if (i.server.analyzers.empty()) return fail("server.json does not say which meter was used");
  for (const Session::Analyzer& one : i.server.analyzers) {
    if (!one.device || std::ranges::find(kDevices, *one.device) == kDevices.end())
      return fail(fmt::format("device {} is no meter of the list",
                              one.device ? std::to_string(*one.device) : "unknown"));
    if (*one.device == 77 && one.channels.size() != 2)
      return fail(fmt::format("a multichannel meter with {} channels configured, 2 are needed",
                              one.channels.size()));
  }
  return check;
}

MlperfCheck debug_mode(const Inference& i) {
  MlperfCheck check = passed("mlperf.debug");
  if (!i.server.debug) return check;
  check.official = check.ours = Checked::failed;
  check.message = "the server ran in debug mode";
  check.remedy = kRerun;
  return check;
}

}  // namespace joulediff::rules
