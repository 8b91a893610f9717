#include "lab/spool_contents.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <joulediff/record.h>
#include <tuple>

#include "base/file.h"
#include "run/names.h"
#include "spool/kernels.h"

namespace joulediff::lab {
namespace {

constexpr std::size_t kTensorBytes = offsetof(jd_tensor_info, sample);
constexpr std::uint64_t kSpoolLimit = 8ull << 30;

using spool::Unpacker;

bool get(Unpacker& in, std::string& text) {
  std::string_view view;
  if (!in.get(view)) return false;
  text = view;
  return true;
}

bool get_ids(Unpacker& in, std::vector<std::uint64_t>& ids) {
  std::uint32_t count = 0;
  if (!in.get(count) || in.rest().size() / sizeof(std::uint64_t) < count) return false;
  ids.resize(count);
  for (std::uint64_t& id : ids) in.get(id);
  return true;
}

template <class T>
bool get_array(std::string_view payload, std::vector<T>& all) {
  if (payload.size() % sizeof(T) != 0) return false;
  if (payload.empty()) return true;  // nothing to copy, from or to nowhere
  const std::size_t before = all.size();
  all.resize(before + payload.size() / sizeof(T));
  std::memcpy(all.data() + before, payload.data(), payload.size());
  return true;
}

value::Fingerprint fingerprint_of(const jd_fingerprint& f) {
  value::Fingerprint out;
  out.count = f.count;
  out.nan = f.nan;
  out.positive_infinity = f.positive_infinity;
  out.negative_infinity = f.negative_infinity;
  out.mean = f.mean;
  out.mean_abs = f.mean_abs;
  out.rms = f.rms;
  out.l4 = f.l4;
  out.m3 = f.m3;
  out.min = f.min;
  out.max = f.max;
  out.own = {f.own[0], f.own[1]};
  out.bf16 = {f.bf16[0], f.bf16[1]};
  out.fp16 = {f.fp16[0], f.fp16[1]};
  out.dtype = static_cast<value::DType>(f.dtype);
  out.distinct = f.distinct;
  return out;
}

bool get_tensor(std::string_view payload, SpoolTensor& out) {
  if (payload.size() < kTensorBytes) return false;
  jd_tensor_info info{};
  std::memcpy(&info, payload.data(), kTensorBytes);
  payload.remove_prefix(kTensorBytes);
  if (info.dims > JD_MAX_DIMS || info.role > JD_CONSTANT ||
      payload.size() != std::size_t{info.sample_count} * sizeof(float))
    return false;
  out.id = info.id;
  run::Tensor& tensor = out.tensor;
  tensor.storage = info.storage;
  tensor.version = info.version;
  tensor.offset = info.offset;
  tensor.role = static_cast<run::Role>(info.role);
  tensor.shape.assign(info.shape, info.shape + info.dims);
  tensor.stride.assign(info.stride, info.stride + info.dims);
  tensor.fingerprint = fingerprint_of(info.fingerprint);
  return get_array(payload, tensor.sample);
}

// Pieces of one stretch of a meter's readings are one series again.
class SeriesPieces {
 public:
  bool take(std::string_view payload, std::vector<run::Series>& all) {
    Unpacker in(payload);
    std::uint32_t source = 0, stretch = 0;
    std::string channel;
    std::vector<spool::Reading> readings;
    if (!in.get(source) || source >= run::kNames<run::Source>.size() || !in.get(stretch) ||
        !get(in, channel) || !get_array(in.rest(), readings))
      return false;
    const auto [place, fresh] = places_.try_emplace({source, stretch, channel}, all.size());
    if (fresh) {
      all.emplace_back();
      all.back().source = static_cast<run::Source>(source);
      all.back().channel = std::move(channel);
    }
    run::Series& series = all[place->second];
    for (const spool::Reading& reading : readings) {
      series.time.push_back(reading.time_ns);
      series.value.push_back(reading.value);
      if (reading.uncertainty_ns >= 0) series.uncertainty.push_back(reading.uncertainty_ns);
    }
    return true;
  }

 private:
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::size_t> places_;
};

// False: the payload has not the form of its type.
bool take(const spool::Record& record, SpoolContents& out, SeriesPieces& pieces) {
  Unpacker in(record.payload);
  switch (record.type) {
    case spool::Type::fact: {
      SpoolFact fact;
      if (!get(in, fact.topic) || !get(in, fact.json)) return false;
      out.facts.push_back(std::move(fact));
      return true;
    }
    case spool::Type::step: return get_array(record.payload, out.steps);
    case spool::Type::tensor: {
      SpoolTensor tensor;
      if (!get_tensor(record.payload, tensor)) return false;
      out.tensors.push_back(std::move(tensor));
      return true;
    }
    case spool::Type::op: {
      SpoolOperator op;
      if (!in.get(op.index) || !get(in, op.name) || !get_ids(in, op.inputs) ||
          !get_ids(in, op.outputs) || !get(in, op.json))
        return false;
      out.operators.push_back(std::move(op));
      return true;
    }
    case spool::Type::op_time: return get_array(record.payload, out.operator_times);
    case spool::Type::kernel_name: {
      std::uint32_t id = 0;
      std::string name;
      if (!in.get(id) || !get(in, name)) return false;
      out.kernel_names[id] = std::move(name);
      return true;
    }
    case spool::Type::kernel: return spool::read_kernels(record.payload, out.kernels);
    case spool::Type::correlation: return get_array(record.payload, out.correlations);
    case spool::Type::replay: {
      SpoolReplay replay;
      if (!in.get(replay.begin) || !in.get(replay.end) || !in.get(replay.count) ||
          !get(in, replay.signature))
        return false;
      out.replays.push_back(std::move(replay));
      return true;
    }
    case spool::Type::dropped: {
      std::uint64_t count = 0;
      if (!in.get(count)) return false;
      out.dropped_kernels += count;
      return true;
    }
    case spool::Type::op_name: {
      SpoolOperatorName name;
      if (!in.get(name.step) || !in.get(name.index) || !get(in, name.name)) return false;
      out.operator_names.push_back(std::move(name));
      return true;
    }
    case spool::Type::inputs: {
      std::uint32_t id = 0;
      std::string text;
      if (!in.get(id) || !get(in, text)) return false;
      out.inputs[id] = std::move(text);
      return true;
    }
    case spool::Type::device: {
      SpoolDevice device;
      if (!in.get(device.ordinal) || !get(in, device.device.uuid) || !get(in, device.device.name))
        return false;
      out.devices.push_back(std::move(device));
      return true;
    }
    case spool::Type::launch_stack: return get_array(record.payload, out.launch_stacks);
    case spool::Type::native_stack: {
      std::uint32_t id = 0, reserved = 0;
      if (!in.get(id) || !in.get(reserved)) return false;
      return get_array(in.rest(), out.native_stacks[id]);
    }
    case spool::Type::module: {
      SpoolModule module;
      if (!in.get(module.begin) || !in.get(module.end) || !in.get(module.file_offset) ||
          !get(in, module.path) || !get(in, module.build_id))
        return false;
      out.modules.push_back(std::move(module));
      return true;
    }
    case spool::Type::synchronisation: return get_array(record.payload, out.synchronisations);
    case spool::Type::clock: return get_array(record.payload, out.clocks);
    case spool::Type::series: return pieces.take(record.payload, out.series);
    case spool::Type::launch: {
      std::string text;
      if (!get(in, text)) return false;
      out.launches.push_back(std::move(text));
      return true;
    }
  }
  return false;
}

// What is known of a step has room for each of its operators.
void leave_out_impossible_calls(SpoolContents& contents) {
  const auto impossible = [](const auto& call) { return call.index >= std::uint32_t{1} << 24; };
  contents.impossible_calls = std::erase_if(contents.operator_times, impossible) +
                              std::erase_if(contents.operator_names, impossible) +
                              std::erase_if(contents.correlations, impossible);
}

}  // namespace

Result<SpoolContents> parse_spool(std::string_view bytes, std::uint32_t pid) {
  spool::Contents raw;
  if (!spool::read(bytes, raw)) return fail(ExitCode::bad_input, "not a spool");
  SpoolContents contents;
  contents.pid = pid;
  contents.torn = raw.torn;
  SeriesPieces pieces;
  for (const spool::Record& record : raw.records)
    if (!take(record, contents, pieces)) ++contents.damaged_records;
  leave_out_impossible_calls(contents);
  return contents;
}

std::vector<SpoolContents> read_spools(const std::string& folder,
                                       std::vector<std::string>& strangers) {
  namespace fs = std::filesystem;
  std::vector<SpoolContents> spools;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".spool") continue;
    const std::string stem = it->path().stem().string();
    std::uint32_t pid = 0;
    if (std::from_chars(stem.data(), stem.data() + stem.size(), pid).ec != std::errc()) continue;
    const Result<std::string> bytes = read_file(it->path().string(), kSpoolLimit);
    Result<SpoolContents> contents =
        bytes ? parse_spool(*bytes, pid) : Result<SpoolContents>(fail(bytes.error()));
    if (contents) {
      spools.push_back(std::move(*contents));
    } else {
      strangers.push_back(it->path().filename().string() + ": " + contents.error().message);
    }
  }
  std::sort(spools.begin(), spools.end(),
            [](const SpoolContents& a, const SpoolContents& b) { return a.pid < b.pid; });
  return spools;
}

}  // namespace joulediff::lab
