// For tests of the engine's calls: operators as lambdas, and what a spool says of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "joulediff/record.h"
#include "record/recorded.h"

namespace joulediff::record {

inline jd_value value_at(const void* data, std::uint32_t dtype, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> stride = {}) {
  jd_value value{};
  value.data = data;
  value.dtype = dtype;
  value.dims = static_cast<std::uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), value.shape);
  std::copy(stride.begin(), stride.end(), value.stride);
  return value;
}

template <std::size_t N>
jd_value vector_of(const std::array<float, N>& values) {
  return value_at(values.data(), JD_FLOAT32, {static_cast<std::int64_t>(N)});
}

template <class Execute>
void run(const char* name, const std::vector<jd_value>& inputs,
         const std::vector<jd_value>& outputs, Execute execute, const jd_place* place = nullptr,
         const char* arguments = nullptr) {
  jd_op op{};
  op.name = name;
  op.place = place;
  op.arguments = arguments;
  op.inputs = inputs.data();
  op.outputs = outputs.data();
  op.input_count = static_cast<std::uint32_t>(inputs.size());
  op.output_count = static_cast<std::uint32_t>(outputs.size());
  jd_run(&op, [](void* context) { (*static_cast<Execute*>(context))(); }, &execute);
}

struct SeenOperator {
  std::string name, json;
  std::vector<std::uint64_t> inputs, outputs;
};

inline std::vector<SeenOperator> operators(const Recorded& r) {
  std::vector<SeenOperator> all;
  for (const auto payload : r.payloads(spool::Type::op)) {
    spool::Unpacker in(payload);
    std::uint32_t index = 0;
    std::string_view name, json;
    SeenOperator op;
    in.get(index);
    in.get(name);
    for (auto* ids : {&op.inputs, &op.outputs}) {
      std::uint32_t count = 0;
      in.get(count);
      ids->resize(count);
      for (std::uint64_t& id : *ids) in.get(id);
    }
    in.get(json);
    op.name = name;
    op.json = json;
    all.push_back(std::move(op));
  }
  return all;
}

struct SeenTensor {
  jd_tensor_info info;
  std::vector<float> sample;
};

// By id, from 1.
inline std::vector<SeenTensor> tensors(const Recorded& r) {
  std::vector<SeenTensor> all;
  for (const auto payload : r.payloads(spool::Type::tensor)) {
    constexpr std::size_t kInfo = offsetof(jd_tensor_info, sample);
    SeenTensor tensor{};
    std::memcpy(static_cast<void*>(&tensor.info), payload.data(), kInfo);
    tensor.sample.resize(tensor.info.sample_count);
    if (!tensor.sample.empty())
      std::memcpy(tensor.sample.data(), payload.data() + kInfo, payload.size() - kInfo);
    all.push_back(std::move(tensor));
  }
  return all;
}

struct SeenReplay {
  std::uint64_t begin = 0, end = 0, count = 0;
  std::string signature;
};

inline std::vector<SeenReplay> replays(const Recorded& r) {
  std::vector<SeenReplay> all;
  for (const auto payload : r.payloads(spool::Type::replay)) {
    spool::Unpacker in(payload);
    SeenReplay replay;
    std::string_view signature;
    in.get(replay.begin);
    in.get(replay.end);
    in.get(replay.count);
    in.get(signature);
    replay.signature = signature;
    all.push_back(std::move(replay));
  }
  return all;
}

}  // namespace joulediff::record
