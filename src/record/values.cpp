#include "record/values.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unistd.h>

#include "record/json.h"
#include "record/replay.h"

namespace joulediff::record {
namespace {

constexpr int kDeepest = 128;  // places of a call path

const char* dtype_name(std::uint32_t dtype) {
  constexpr std::array<const char*, 15> kNames = {
      "other", "float32",   "float64",    "float16",     "bfloat16",
      "int8",  "int16",     "int32",      "int64",       "uint8",
      "bool",  "complex64", "complex128", "float8_e4m3", "float8_e5m2"};
  return dtype < kNames.size() ? kNames[dtype] : kNames[0];
}

const char* text(const char* given) {
  return given != nullptr ? given : "";
}

// As the framework's plug-ins write it, so that a place in the program's folder reads the same.
std::string portable(const char* file) {
  static const std::string here = [] {
    std::array<char, 4096> folder{};
    return getcwd(folder.data(), folder.size()) != nullptr ? std::string(folder.data()) + "/" : "";
  }();
  std::string path = text(file);
  if (!here.empty() && path.starts_with(here)) path.erase(0, here.size());
  return path;
}

// "void engine::Model::forward(const Scope&)", as compilers write it, is engine::Model::forward.
std::string_view bare(std::string_view function) {
  function = function.substr(0, function.find('('));
  return function.substr(function.rfind(' ') + 1);
}

struct Geometry {
  std::vector<std::int64_t> shape, stride;
};

Geometry geometry_of(const jd_value& value) {
  const std::uint32_t dims = std::min<std::uint32_t>(value.dims, JD_MAX_DIMS);
  Geometry g{{value.shape, value.shape + dims}, {value.stride, value.stride + dims}};
  if (std::ranges::all_of(g.stride, [](std::int64_t s) { return s == 0; })) {
    std::int64_t step = 1;
    for (std::uint32_t i = dims; i-- > 0;) {
      g.stride[i] = step;
      if (__builtin_mul_overflow(step, std::max<std::int64_t>(1, g.shape[i]), &step))
        step = std::numeric_limits<std::int64_t>::max();
    }
  }
  return g;
}

std::string joined(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (const std::int64_t n : numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
  return out;
}

bool is_object(const char* json) {
  return json != nullptr && *json == '{';
}

// Of what no operator of the step has written.
std::uint32_t role_outside(const jd_value& value) {
  if (value.role == JD_PARAMETER || value.role == JD_CONSTANT) return value.role;
  return JD_INPUT;
}

void add_once(std::vector<std::uint64_t>& ids, std::uint64_t id) {
  if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
}

// Else it is left out, and that is told.
bool can_be(const jd_value& value) {
  return is_possible(value.dims, value.shape, value.stride, size_of(value.dtype));
}

}  // namespace

std::string signature_of(const jd_op& op) {
  std::string out = std::string(text(op.name)) + "(", last;
  std::uint32_t count = 0;
  const auto close = [&] {
    if (count > 0)
      out +=
          (out.ends_with("(") ? "" : ", ") + (count > 1 ? std::to_string(count) + "x" : "") + last;
    count = 0;
  };
  for (std::uint32_t i = 0; i < op.input_count; ++i) {
    const Geometry g = geometry_of(op.inputs[i]);
    std::string spec = "[" + joined(g.shape) + "]:[" + joined(g.stride) +
                       "]:" + dtype_name(op.inputs[i].dtype) + ":" + memory().name();
    if (spec != last) close();
    last = std::move(spec);
    ++count;
  }
  close();
  return out + "; " + (is_object(op.arguments) ? op.arguments : "{}") + ")";
}

bool usable(const jd_value& value) {
  if (!can_be(value) || value.data == nullptr) return false;
  return std::all_of(value.shape, value.shape + value.dims, [](std::int64_t n) { return n > 0; });
}

Bytes bytes_of(const jd_value& value) {
  const Layout layout = layout_of(value.dims, value.shape, value.stride);
  const auto size = static_cast<std::int64_t>(std::max<std::size_t>(1, size_of(value.dtype)));
  const auto at = reinterpret_cast<std::uintptr_t>(value.data);
  return {at + static_cast<std::uintptr_t>(layout.first * size),
          at + static_cast<std::uintptr_t>((layout.last + 1) * size)};
}

void Values::before(const jd_op& op) {
  operators_.push_back({text(op.name), json_of(op), {}, {}});
  for (std::uint32_t i = 0; i < op.input_count; ++i) {
    if (usable(op.inputs[i])) add_once(operators_.back().inputs, read(op.inputs[i]));
    if (!can_be(op.inputs[i])) ++impossible_;
  }
}

void Values::after(const jd_op& op) {
  for (std::uint32_t i = 0; i < op.output_count; ++i) {
    const jd_value& value = op.outputs[i];
    if (!can_be(value)) ++impossible_;
    if (!usable(value)) continue;
    writes_.push_back({bytes_of(value), ++version_});
    operators_.back().outputs.push_back(add(value, version_, JD_COMPUTED));
  }
}

std::uint64_t Values::last_write(const Bytes& bytes) const {
  for (auto write = writes_.rbegin(); write != writes_.rend(); ++write)
    if (write->bytes.begin < bytes.end && bytes.begin < write->bytes.end) return write->version;
  return 0;
}

std::uint64_t Values::read(const jd_value& value) {
  const Bytes bytes = bytes_of(value);
  const std::uint64_t version = last_write(bytes);
  const Geometry g = geometry_of(value);
  const Key key{reinterpret_cast<std::uintptr_t>(value.data), version, value.dtype, g.shape,
                g.stride};
  const std::uint32_t role = version > 0 ? std::uint32_t{JD_COMPUTED} : role_outside(value);
  const auto found = known_.find(key);
  if (found == known_.end()) return known_[key] = add(value, version, role);
  const jd_tensor_info& before = values_[found->second - 1].info;
  if (before.role != JD_COMPUTED && before.role != JD_INPUT) return found->second;
  jd_tensor_info now = before;
  observe(now, value.data, false);
  if (std::ranges::equal(now.fingerprint.own, before.fingerprint.own)) return found->second;
  ++unseen_;
  writes_.push_back({bytes, ++version_});
  return add(value, version_, JD_INPUT);
}

std::uint64_t Values::add(const jd_value& value, std::uint64_t version, std::uint32_t role) {
  const Geometry g = geometry_of(value);
  Value added{{}, {}, bytes_of(value)};
  jd_tensor_info& info = added.info;
  info.id = values_.size() + 1;
  info.version = version;
  info.dims = value.dims;
  info.role = role;
  std::ranges::copy(g.shape, info.shape);
  std::ranges::copy(g.stride, info.stride);
  info.fingerprint.dtype = static_cast<std::uint8_t>(value.dtype);
  added.sample = observe(info, value.data, role == JD_COMPUTED || role == JD_INPUT);
  // Where the tensor begins; report() makes it a place in its storage.
  info.offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(value.data));
  values_.push_back(std::move(added));
  known_[{reinterpret_cast<std::uintptr_t>(value.data), version, value.dtype, g.shape, g.stride}] =
      info.id;
  return info.id;
}

std::string Values::json_of(const jd_op& op) {
  std::string json = R"({"signature":")" + escaped(signature_of(op)) + R"(","module":")" +
                     escaped(text(op.module)) + '"';
  if (op.place != nullptr) json += R"(,"stack":)" + std::to_string(stack_of(op.place));
  if (is_object(op.arguments)) json += std::string(R"(,"arguments":)") + op.arguments;
  return json + "}";
}

std::uint64_t Values::stack_of(const jd_place* place) {
  std::string frames;
  for (int depth = 0; place != nullptr && depth < kDeepest; place = place->caller, ++depth)
    frames += (frames.empty() ? "[\"" : ",[\"") + escaped(portable(place->file)) + "\"," +
              std::to_string(place->line) + ",\"" + escaped(bare(text(place->function))) + "\"]";
  const auto [found, fresh] = stacks_.try_emplace(frames, stacks_.size());
  if (fresh) {
    const std::string fact =
        R"({"id":)" + std::to_string(found->second) + R"(,"frames":[)" + frames + "]}";
    jd_fact("stack", fact.c_str());
  }
  return found->second;
}

void Values::number_storages() {
  std::vector<std::size_t> order(values_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values_[i].bytes.begin; });
  std::uint64_t storage = 0;
  std::uintptr_t begin = 0, end = 0;
  for (const std::size_t i : order) {
    Value& value = values_[i];
    if (storage == 0 || value.bytes.begin >= end) {
      ++storage;
      begin = value.bytes.begin;
      end = value.bytes.end;
    }
    end = std::max(end, value.bytes.end);
    const std::size_t size = std::max<std::size_t>(1, size_of(value.info.fingerprint.dtype));
    const auto at = static_cast<std::uintptr_t>(value.info.offset);
    value.info.storage = storage;
    value.info.offset = static_cast<std::int64_t>((at - begin) / size);
  }
}

void Values::report() {
  number_storages();
  for (Value& value : values_) {
    value.info.sample = value.sample.data();
    value.info.sample_count = static_cast<std::uint32_t>(value.sample.size());
    jd_tensor(&value.info);
  }
  std::uint32_t index = 0;
  for (const Operator& op : operators_)
    jd_operator(index++, op.name.c_str(), op.inputs.data(),
                static_cast<std::uint32_t>(op.inputs.size()), op.outputs.data(),
                static_cast<std::uint32_t>(op.outputs.size()), op.json.c_str());
  if (impossible_ > 0) tell_impossible(impossible_);
  if (unseen_ > 0)
    tell("warning", "unseen_write",
         std::to_string(unseen_) +
             " values changed between two operators that were recorded; run "
             "what wrote them through jd_run");
}

}  // namespace joulediff::record
