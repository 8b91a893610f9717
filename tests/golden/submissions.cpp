#include "submissions.h"

#include "import/mlperf/test_files.h"

namespace joulediff::golden {
namespace {

using mlperf::write_submission;
using run::Submission;

Submission inference(const std::string& benchmark, double watts, const std::string& accuracy) {
  Submission s = run::good_inference();
  s.benchmark = benchmark;
  s.inference->accuracy = accuracy;
  for (run::InferencePart* part : {&s.inference->ranging, &s.inference->testing})
    for (double& one : part->power.total.watts) one *= watts / 100;
  s.description["accelerator_model_name"] = "an accelerator";
  s.description["framework"] = "a framework 1.0";
  return s;
}

// The current's peaks are beyond the range: 37 readings below 0, and what the daemon says of it.
Submission negative() {
  Submission s = inference("mobilenet", 30, "accuracy=71.7%, good=35850, total=50000\n");
  run::Inference& i = *s.inference;
  run::LoadGenLog& log = i.testing.loadgen;
  log.scenario = log.summary_scenario = s.scenario = "SingleStream";
  log.samples_per_second.reset();
  log.summary_rate.reset();
  log.query_count = 132176;
  i.ptd.texts = {"Can't evaluate uncertainty of this sample!",
                 "Bad watts reading 9.91e37 from Yokogawa",
                 "Current exceeds peak value allowed for range 0.5A and CF 3.", "Uncertainty"};
  i.ptd.events.push_back({*i.ptd.ranging_begin + run::kSecond, Severity::error, 1, {}, false});
  for (std::size_t k = 100; k < 137; ++k) {
    i.testing.power.total.watts[k] *= -1;
    i.ptd.events.push_back({i.testing.power.total.time[k], Severity::error, 2, {}, false});
  }
  i.ptd.events.push_back({i.testing.power.total.time[200], Severity::warning, 3, 0.0131, false});
  i.server.ptd_messages[1].reply =
      "YokogawaWT210,version=1.10.0-ed9a21d2-20220817,no_cal_date,"
      "YOKOGAWA;760401;0;F1.12";
  for (float& factor : i.testing.power.total.power_factor) factor = 0.48F;
  return s;
}

Submission training() {
  Submission s = run::good_training();
  for (run::TrainingRun& run : s.training->runs) {
    run.meters[0].stop = run.meters[0].start;
    run.meters[0].no_metadata = 1;
  }
  return s;
}

}  // namespace

void write_submissions(const std::string& folder) {
  const mlperf::fs::path root = mlperf::fs::path(folder) / "mlperf";
  const mlperf::fs::path results = root / "closed/Somebody/results/box";
  write_submission(inference("bert-99", 100, "{\"exact_match\": 82.9, \"f1\": 90.36}\n"),
                   results / "bert-99/Offline");
  write_submission(inference("bert-99.9", 125, "{\"exact_match\": 83.9, \"f1\": 90.97}\n"),
                   results / "bert-99.9/Offline");
  write_submission(negative(), results / "mobilenet/SingleStream");
  write_submission(training(), root / "training/llama2_70b_lora");
  write_submission(run::good_tiny(), root / "tiny/kws");
}

}  // namespace joulediff::golden
