#include "record/replay.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "record/json.h"
#include "record/values.h"

namespace joulediff::record {
namespace {

constexpr double kChunkSeconds = 0.25;
constexpr double kFloorSeconds = 1e-3;  // of one execution of a floor
constexpr std::uint64_t kQueuedSpins = 8;
constexpr std::size_t kLongestSignature = 400;  // in a diagnostic

}  // namespace

void tell(const char* severity, const char* rule, const std::string& message) {
  const std::string fact = std::string(R"({"severity":")") + severity + R"(","rule":"record.)" +
                           rule + R"(","message":")" + escaped(message) + "\"}";
  jd_fact("diagnostic", fact.c_str());
}

void tell_impossible(std::uint64_t values) {
  tell("warning", "impossible_value",
       std::to_string(values) +
           " values have a shape or strides that no memory holds; they are left out");
}

void Replay::begin() {
  auto chosen = costliest(operators_, jd_operator_seconds);
  if (chosen.empty())
    tell("warning", "no_replay", "nothing is replayed: the order pass timed no operator");
  if (chosen.empty()) return;
  const char* const path = Launcher::path();
  if (path == nullptr)
    return tell("note", "no_replay", "nothing is replayed: no launcher is there to measure");
  if (!launcher_.connect())
    return tell("warning", "launcher_lost",
                std::string("nothing is replayed: joulediff record does not answer at ") + path);
  const std::uint64_t floors = memory().spins() ? 2 : 1;
  const std::uint64_t room = launcher_.plan(chosen.size() + floors);
  chosen.resize(std::min<std::uint64_t>(chosen.size(), room > floors ? room - floors : 0));
  wanted_.insert(chosen.begin(), chosen.end());
  const auto spin = [](std::uint64_t count) {
    for (std::uint64_t i = 1; i <= count; ++i) {
      memory().spin();
      if (i % kQueuedSpins == 0) memory().synchronize();
    }
  };
  const auto rest = [](std::uint64_t count) {
    const auto ns = static_cast<long>(static_cast<double>(count) * kFloorSeconds * 1e9);
    const timespec pause{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&pause, nullptr);
  };
  if (memory().spins()) measure("joulediff.static", kFloorSeconds, spin, {});
  measure("joulediff.idle", kFloorSeconds, rest, {});
}

void Replay::at(std::uint32_t index, const jd_op& op, void (*execute)(void*), void* context) {
  if (wanted_.empty() || launcher_.lost() || index >= operators_.size()) return;
  auto found = wanted_.find(signature_of(op));
  if (found == wanted_.end() && op.name != nullptr && operators_[index].name == op.name) {
    // A cache that grows: the steps have not the same shapes.
    found = wanted_.find(operators_[index].signature);
    if (found == wanted_.end() || found->second != index) return;
    ++other_shape_;
  }
  if (found == wanted_.end()) return;
  const std::string signature = found->first;
  const std::uint32_t planned = found->second;
  wanted_.erase(found);
  const std::vector<Saved> fresh = changed_in_place(op);
  const auto run = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) execute(context);
  };
  run(1);
  measure(signature, jd_operator_seconds(planned), run, fresh);
  for (const Saved& saved : fresh) memory().copy(saved.to, saved.bytes.data(), saved.bytes.size());
}

// An operator in place must not run away over thousands of executions, and the step that it is part
// of must find what it would have found.
std::vector<Replay::Saved> Replay::changed_in_place(const jd_op& op) {
  std::vector<Saved> fresh;
  for (std::uint32_t i = 0; i < op.output_count; ++i) {
    const jd_value& out = op.outputs[i];
    if (!usable(out)) continue;
    const Bytes written = bytes_of(out);
    const bool read = std::any_of(op.inputs, op.inputs + op.input_count, [&](const jd_value& in) {
      if (!usable(in)) return false;
      const Bytes bytes = bytes_of(in);
      return bytes.begin < written.end && written.begin < bytes.end;
    });
    if (!read) continue;
    void* const to = reinterpret_cast<void*>(written.begin);
    fresh.push_back({to, std::vector<std::byte>(written.end - written.begin)});
    memory().copy(fresh.back().bytes.data(), to, fresh.back().bytes.size());
  }
  return fresh;
}

void Replay::measure(const std::string& signature, double seconds,
                     const std::function<void(std::uint64_t)>& run,
                     const std::vector<Saved>& fresh) {
  const std::uint64_t number = number_++;
  auto count = static_cast<std::uint64_t>(std::max(1.0, kChunkSeconds / std::max(seconds, 1e-7)));
  while (count > 0) {
    for (const Saved& saved : fresh)
      memory().copy(saved.to, saved.bytes.data(), saved.bytes.size());
    memory().synchronize();
    const std::uint64_t begin = jd_now();
    run(count);
    memory().synchronize();
    const std::uint64_t end = jd_now();
    jd_replay(signature.c_str(), begin, end, count);
    count = launcher_.more(number, begin, end, count);
  }
}

void Replay::end() {
  if (launcher_.lost() && number_ > 0)
    return tell("warning", "launcher_lost",
                "joulediff record answered no more in the replay: operators without a replay are "
                "estimated");
  for (const auto& [signature, index] : wanted_)
    tell("warning", "not_replayed",
         (signature.size() > kLongestSignature ? signature.substr(0, kLongestSignature) + "..."
                                               : signature) +
             " is estimated, as it was not replayed: the replay step did not call it");
  if (other_shape_ > 0)
    tell("note", "replayed_at_another_shape",
         std::to_string(other_shape_) + " operators came with other shapes in the replay step");
}

}  // namespace joulediff::record
