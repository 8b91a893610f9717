// Checks of a training or HPC submission, and of a Tiny one. Of the former the official package
// checker looks at names and numbers of files alone; of the latter nothing looks at the trace.
#include <algorithm>
#include <cmath>
#include <set>

#include "rules/mlperf_rules.h"

namespace joulediff::rules {
namespace {

using run::Training;
using run::TrainingMeter;
using run::TrainingRun;

MlperfCheck failed(MlperfCheck check, std::string message, std::string remedy) {
  check.ours = Checked::failed;
  check.message = std::move(message);
  check.remedy = std::move(remedy);
  return check;
}

std::string more(const std::string& first, std::size_t n) {
  return n > 1 ? fmt::format("{} and {} more", first, n - 1) : first;
}

// Applies `wrong` to each meter; says which and how many.
template <class Wrong>
MlperfCheck of_meters(const Training& training, std::string id, Wrong wrong, std::string what,
                      std::string remedy) {
  MlperfCheck check = passed(std::move(id), Checked::unchecked);
  std::string first;
  std::size_t n = 0, all = 0;
  for (const TrainingRun& run : training.runs)
    for (const TrainingMeter& meter : run.meters) {
      ++all;
      if (!wrong(run, meter)) continue;
      if (n++ == 0) first = run.name + "/" + meter.series.name;
    }
  if (n == 0) return check;
  return failed(check, fmt::format("{} in {} of {} power logs ({})", what, n, all, more(first, n)),
                std::move(remedy));
}

MlperfCheck power_folders(const Training& t) {
  MlperfCheck check = passed("mlperf.power_folder");
  for (const TrainingRun& run : t.runs)
    if (!run.power_folder) {
      check.official = Checked::failed;
      return failed(check, fmt::format("{} has no folder power/{}", run.file, run.name),
                    "file the power log of every run");
    }
  return check;
}

MlperfCheck node_names(const Training& t) {
  MlperfCheck check = passed("mlperf.node_names");
  std::optional<std::pair<std::size_t, std::size_t>> before;
  for (const TrainingRun& run : t.runs) {
    std::set<std::string> nodes, switches;
    for (const TrainingMeter& meter : run.meters)
      (meter.is_switch ? switches : nodes).insert(meter.series.name);
    std::string wrong;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!nodes.contains(fmt::format("node_{}", i))) wrong = fmt::format("node_{} is missing", i);
    for (std::size_t i = 0; i < switches.size(); ++i)
      if (!switches.contains(fmt::format("sw_{}", i))) wrong = fmt::format("sw_{} is missing", i);
    if (nodes.empty()) wrong = "no node was measured";
    const std::pair now{nodes.size(), switches.size()};
    if (before && *before != now)
      wrong = fmt::format("{} nodes and {} switches, other runs have {} and {}", now.first,
                          now.second, before->first, before->second);
    before = now;
    if (wrong.empty()) continue;
    check.official = Checked::failed;
    return failed(check, fmt::format("{}: {}", run.name, wrong),
                  "measure the same nodes and switches in every run");
  }
  return check;
}

MlperfCheck run_markers(const Training& t) {
  MlperfCheck check = passed("mlperf.run_markers", Checked::unchecked);
  for (const TrainingRun& run : t.runs) {
    if (!run.start || !run.stop || *run.stop <= *run.start)
      return failed(check, fmt::format("{} marks no run_start and run_stop after it", run.name),
                    "file the whole result");
    if (!run.status.empty() && run.status != "success")
      return failed(check, fmt::format("{} ended with \"{}\"", run.name, run.status),
                    "only runs that reach the target count");
  }
  return check;
}

MlperfCheck stop_time(const Training& t) {
  return of_meters(
      t, "mlperf.power_stop",
      [](const TrainingRun&, const TrainingMeter& m) {
        return m.series.size() > 0 && (!m.start || !m.stop || *m.stop <= *m.start);
      },
      "power_measurement_stop is not later than power_measurement_start",
      "stamp the stop when it happens: the official summariser divides by the difference");
}

MlperfCheck metadata(const Training& t) {
  MlperfCheck check = of_meters(
      t, "mlperf.metadata",
      [](const TrainingRun&, const TrainingMeter& m) { return m.no_metadata > 0; },
      "the metadata is the empty string, not an object", "write host and measurement_type");
  if (check.ours == Checked::failed) check.ours = Checked::warned;
  return check;
}

MlperfCheck log_covers(const Training& t) {
  std::string offset;
  MlperfCheck check = of_meters(
      t, "mlperf.log_clock",
      [&](const TrainingRun& run, const TrainingMeter& m) {
        if (!run.start || !run.stop || m.series.size() == 0) return false;
        const auto [first, last] = std::ranges::minmax_element(m.series.time);
        if (*first <= *run.start && *last >= *run.stop) return false;
        if (offset.empty()) {
          const double seconds = to_seconds(*first - *run.start).value;
          const double hours = std::round(seconds / 3600);
          const bool zone = hours != 0 && std::abs(seconds - hours * 3600) < 600;
          offset = zone ? fmt::format(" (its clock is {:+.0f} s off, {:+.0f} h of a time zone)",
                                      seconds, hours)
                        : fmt::format(" (it begins {:+.1f} s after the run)", seconds);
        }
        return true;
      },
      "the log does not reach over its run", "run the meters in UTC, from before the run to after");
  check.message += offset;
  return check;
}

MlperfCheck repeated_times(const Training& t) {
  double worst = 0;
  MlperfCheck check = of_meters(
      t, "mlperf.repeated_times",
      [&](const TrainingRun&, const TrainingMeter& m) {
        std::size_t same = 0;
        for (std::size_t i = 1; i < m.series.size(); ++i)
          same += m.series.time[i] <= m.series.time[i - 1] ? 1 : 0;
        const double share = m.series.size() == 0
                                 ? 0
                                 : static_cast<double>(same) / static_cast<double>(m.series.size());
        worst = std::max(worst, share);
        return same > 0;
      },
      "times repeat or go back", "log each reading once, when it is made");
  if (check.ours == Checked::failed) {
    check.message += fmt::format(", up to {} of the readings", format_percent(worst));
    if (worst <= 0.001) check.ours = Checked::warned;
  }
  return check;
}

MlperfCheck hosts(const Training& t) {
  MlperfCheck check = passed("mlperf.hosts", Checked::unchecked);
  for (const TrainingRun& run : t.runs) {
    std::map<std::string, std::string> seen;
    for (const TrainingMeter& meter : run.meters) {
      if (meter.host.empty() || meter.is_switch) continue;
      const auto [found, is_new] = seen.emplace(meter.host, meter.series.name);
      if (!is_new)
        return failed(check,
                      fmt::format("{}: {} and {} both say that they are host {}", run.name,
                                  found->second, meter.series.name, meter.host),
                      "file the log of each node once");
    }
  }
  return check;
}

MlperfCheck switches_counted(const Training& t) {
  MlperfCheck check = passed("mlperf.switches", Checked::unchecked);
  for (const TrainingRun& run : t.runs)
    for (const TrainingMeter& meter : run.meters)
      if (meter.is_switch && meter.series.size() > 0 && !meter.interconnect_watts) {
        check.ours = Checked::warned;
        check.message = fmt::format(
            "{}/{} was measured, and the official summariser counts only "
            "estimates of switches",
            run.name, meter.series.name);
        check.remedy = "count it: the energy below does";
        return check;
      }
  return check;
}

}  // namespace

Checks training_checks(const run::Submission& submission) {
  const Training& t = *submission.training;
  Checks checks;
  for (const auto check : {power_folders, node_names, run_markers, stop_time, metadata, log_covers,
                           repeated_times, hosts, switches_counted})
    checks.push_back(check(t));
  return checks;
}

Checks tiny_checks(const run::Submission& submission) {
  const run::Tiny& tiny = *submission.tiny;
  Checks checks;
  const auto add = [&](std::string id, Checked official, const std::string& message,
                       std::string remedy) {
    MlperfCheck check = passed(std::move(id), official);
    if (!message.empty()) check = failed(check, message, std::move(remedy));
    checks.push_back(std::move(check));
  };
  std::string message;
  if (tiny.windows.size() != 5)
    message = fmt::format("{} windows, 5 are asked for", tiny.windows.size());
  add("mlperf.tiny_windows", message.empty() ? Checked::passed : Checked::failed, message,
      "run the whole script");
  message.clear();
  for (std::size_t k = 0; k < tiny.windows.size(); ++k) {
    const double seconds = tiny.windows[k].end - tiny.windows[k].begin;
    if (seconds < 10)
      message = fmt::format("window {} is {:.3f} s long, 10 s are the least", k + 1, seconds);
    if (tiny.windows[k].inferences.value_or(10) < 10)
      message = fmt::format("window {} has {:g} inferences, 10 are the least", k + 1,
                            *tiny.windows[k].inferences);
  }
  add("mlperf.tiny_duration", message.empty() ? Checked::passed : Checked::failed, message,
      "raise the number of inferences");
  message.clear();
  const Score score = tiny_score(tiny);
  if (score.published && score.official) {
    const double off = *score.official / *score.published - 1;
    if (std::abs(off) > 2e-4)
      message = fmt::format("the trace gives {:.3f} uJ an inference, results.txt says {:.3f} ({})",
                            *score.official, *score.published, format_percent(off));
  } else {
    message = !score.published ? "results.txt states no median"
                               : "no window can be taken from the "
                                 "trace";
  }
  add("mlperf.tiny_trace", Checked::unchecked, message, "file trace and results of one run");
  message.clear();
  const double last = tiny.windows.empty() ? 0 : tiny.windows.back().end;
  if (tiny.rate && static_cast<double>(tiny.microjoules.size()) < last * *tiny.rate * 0.999)
    message = fmt::format(
        "the trace has {:.3f} s, the last window ends at {:.3f} s: samples were "
        "dropped, or the trace was cut",
        static_cast<double>(tiny.microjoules.size()) / *tiny.rate, last);
  add("mlperf.tiny_samples", Checked::unchecked, message, "measure again");
  checks.push_back(quality(submission));
  return checks;
}

}  // namespace joulediff::rules
