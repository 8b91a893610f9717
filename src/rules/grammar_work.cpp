// What was done, how well, and under what load.
#include <algorithm>

#include "rules/direction.h"
#include "rules/grammar_rules.h"

namespace joulediff::rules {

Objected work_unit(const Point& a, const Point& b) {
  Differences d;
  d.of("unit", a.work.unit, b.work.unit)
      .of("model", a.work.model, b.work.model)
      .of("model hash", a.work.model_hash, b.work.model_hash)
      .of("dataset", a.work.dataset, b.work.dataset)
      .of("input lengths", a.work.input_lengths, b.work.input_lengths)
      .of("output lengths", a.work.output_lengths, b.work.output_lengths);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("the work differs: {}", d.text()),
                "measure both on the same work, and count it in the same unit");
}

Objected completed_work(const Point& p) {
  if (p.work.valid && !*p.work.valid)
    return object(Severity::error, "the benchmark calls the result invalid",
                  "take a run that it calls valid");
  if (p.work.count && !(*p.work.count > 0))
    return object(Severity::error, "no work was completed", "take a run that completes some");
  if (p.work.count && p.work.attempted && *p.work.count > *p.work.attempted)
    return object(Severity::error,
                  fmt::format("{} items were completed, and only {} attempted", said(p.work.count),
                              said(p.work.attempted)),
                  "count both in one unit, over one window");
  if (p.work.count && p.work.attempted && *p.work.attempted > *p.work.count)
    return object(
        Severity::error,
        fmt::format("{} of {} items were not completed, and their energy is in the total",
                    said(Fact(*p.work.attempted - *p.work.count)), said(p.work.attempted)),
        "take a run in which nothing fails or is dropped");
  return {};
}

Objected token_conversion(const Point& p) {
  if (p.work.converted_from.empty()) return {};
  if (!p.work.factor)
    return object(
        Severity::warning,
        fmt::format("the work was counted in {}s and converted to {}s by a factor that is "
                    "not stated",
                    p.work.converted_from, p.work.unit),
        "state work.factor, or count the unit itself");
  return object(Severity::note,
                fmt::format("converted with {} {}s for each {}", said(p.work.factor), p.work.unit,
                            p.work.converted_from),
                "count the unit itself");
}

Objected quality_reached(const Point& p) {
  const auto& q = p.quality;
  if (is_share(q.metric) && std::max(q.value.value_or(0), q.target.value_or(0)) > 100)
    return object(Severity::error,
                  fmt::format("a{} {} of {} is none: it is 100 % at most",
                              q.value.value_or(0) > 100 ? "n observed" : " target", q.metric,
                              said(q.value.value_or(0) > 100 ? q.value : q.target)),
                  "state it as a share of 1 or of 100, or call the metric what it is");
  if (!q.value || !q.target || *q.value == *q.target) return {};
  const std::optional<Better> better = direction_of(p);
  if (!better)
    return object(
        Severity::warning,
        q.higher_is_better
            ? fmt::format("whether the {} of {} reaches its target of {} is not known: "
                          "quality.higher_is_better is {}, and of this metric the other holds",
                          q.metric, said(q.value), said(q.target), *q.higher_is_better)
            : fmt::format("whether the {} of {} reaches its target of {} is not known: nobody says "
                          "which way it is better",
                          q.metric.empty() ? "quality" : q.metric, said(q.value), said(q.target)),
        q.higher_is_better ? "set quality.higher_is_better right, or leave it out"
                           : "state quality.higher_is_better");
  if (*better == Better::higher ? *q.value > *q.target : *q.value < *q.target) return {};
  return object(
      Severity::error,
      fmt::format("{} is {}, its target {}", said(q.metric), said(q.value), said(q.target)),
      "measure a build that reaches the target");
}

Objected quality_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("metric", a.quality.metric, b.quality.metric)
      .of("target", a.quality.target, b.quality.target);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("the quality asked for differs: {}", d.text()),
                "hold both to the same target");
}

Objected precision(const Point& a, const Point& b) {
  if (!differ(a.quality.precision, b.quality.precision)) return {};
  return object(Severity::warning,
                fmt::format("the precision differs ({} against {}): a difference belongs to the "
                            "format, not to the device",
                            said(a.quality.precision), said(b.quality.precision)),
                "measure both in one precision, or claim the format");
}

Objected one_build(const Point& p) {
  if (!differ(p.quality.accuracy_build, p.quality.performance_build)) return {};
  return object(Severity::error,
                fmt::format("quality was measured on build {}, energy on {}",
                            p.quality.accuracy_build, p.quality.performance_build),
                "measure the quality of the build whose energy is stated");
}

Objected scenario_equal(const Point& a, const Point& b) {
  Differences d;
  d.of("arrival", a.scenario.arrival, b.scenario.arrival)
      .of("batch", a.scenario.batch, b.scenario.batch)
      .of("concurrency", a.scenario.concurrency, b.scenario.concurrency)
      .of("percentile of the limit", a.scenario.slo_percentile, b.scenario.slo_percentile)
      .of("limit of latency in s", a.scenario.slo_seconds, b.scenario.slo_seconds);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("the load differs: {}", d.text()),
                "measure both under the same load");
}

Objected slo_met(const Point& p) {
  const auto& s = p.scenario;
  if (s.observed_seconds && s.slo_seconds && *s.observed_seconds > *s.slo_seconds)
    return object(Severity::error,
                  fmt::format("the observed latency is {} s, its limit {} s",
                              said(s.observed_seconds), said(s.slo_seconds)),
                  "lower the load until the limit holds");
  if (s.slo_seconds && s.confidence && *s.confidence < 0.99)
    return object(Severity::error,
                  fmt::format("that the latency keeps its limit is known with {} only",
                              format_percent(*s.confidence)),
                  "run more queries, up to 99 %");
  return {};
}

Objected inferred(const Point& p) {
  if (p.scenario.inferred_from.empty()) return {};
  return object(Severity::warning,
                fmt::format("inferred from {}, and not measured", p.scenario.inferred_from),
                "measure it");
}

Objected copied(const Point& a, const Point& b) {
  if (a.scenario.log_hash.empty() || a.scenario.log_hash != b.scenario.log_hash) return {};
  return object(Severity::warning,
                fmt::format("both rest on the same log ({})", truncated(a.scenario.log_hash, 12)),
                "measure the second one, too");
}

}  // namespace joulediff::rules
