#include "record/observe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <span>

#include "record/replay.h"
#include "value/fingerprint.h"

namespace joulediff::record {
namespace {

using value::DType;

static_assert(JD_FLOAT32 == int(DType::float32) && JD_FLOAT8_E5M2 == int(DType::float8_e5m2));

jd_fingerprint packed(const value::Fingerprint& f) {
  jd_fingerprint out{};
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
  std::ranges::copy(f.own, out.own);
  std::ranges::copy(f.bf16, out.bf16);
  std::ranges::copy(f.fp16, out.fp16);
  out.dtype = static_cast<std::uint8_t>(f.dtype);
  out.distinct = f.distinct;
  return out;
}

// Values that nobody can read equal no others.
jd_fingerprint unreadable(const jd_tensor_info& info, std::int64_t count) {
  jd_fingerprint out{};
  out.count = static_cast<std::uint64_t>(count);
  out.own[0] = static_cast<std::uint32_t>(info.id);
  out.own[1] = ~out.own[0];
  return out;
}

}  // namespace

void Memory::use(const jd_device& device) {
  device_ = device;
  named_ = true;
  name_ = device.name != nullptr ? device.name : "device";
}

void Memory::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  if (on_host())
    std::memcpy(to, from, bytes);
  else
    device_.copy(device_.context, to, from, bytes);
}

void Memory::synchronize() const {
  if (device_.synchronize != nullptr) device_.synchronize(device_.context);
}

Memory& memory() {
  static Memory* const the = new Memory;  // the host's threads may outlive main
  return *the;
}

std::size_t size_of(std::uint32_t dtype) {
  constexpr std::array<std::size_t, 15> kSizes = {0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 1, 8, 16, 1, 1};
  return dtype < kSizes.size() ? kSizes[dtype] : 0;
}

bool is_possible(std::uint32_t dims, const std::int64_t* shape, const std::int64_t* stride,
                 std::size_t size) {
  constexpr double kMostBytes = 1ull << 47;  // that a process can address
  if (dims > JD_MAX_DIMS || std::any_of(shape, shape + dims, [](auto n) { return n < 0; }))
    return false;
  const bool dense = std::all_of(stride, stride + dims, [](std::int64_t s) { return s == 0; });
  double count = 1, reach = 1;  // where an integer would overflow
  for (std::uint32_t i = 0; i < dims; ++i) {
    const auto length = static_cast<double>(std::max<std::int64_t>(1, shape[i]));
    count *= length;
    reach += (length - 1) * std::abs(static_cast<double>(stride[i]));
  }
  return count <= kMostBytes &&
         (dense ? count : reach) * static_cast<double>(std::max<std::size_t>(1, size)) <=
             kMostBytes;
}

Layout layout_of(std::uint32_t dims, const std::int64_t* shape, const std::int64_t* stride) {
  dims = std::min<std::uint32_t>(dims, JD_MAX_DIMS);
  Layout layout;
  std::array<std::int64_t, JD_MAX_DIMS> steps{};
  const bool dense = std::all_of(stride, stride + dims, [](std::int64_t s) { return s == 0; });
  std::int64_t step = 1;
  for (std::uint32_t i = dims; i-- > 0; step *= shape[i]) steps[i] = dense ? step : stride[i];
  for (std::uint32_t i = 0; i < dims; ++i) {
    if (shape[i] <= 0) return {{0}, {1}, 0, 0, -1};
    if (shape[i] == 1 || steps[i] == 0) continue;
    layout.shape.push_back(shape[i]);
    layout.stride.push_back(steps[i]);
    layout.count *= shape[i];
    (steps[i] > 0 ? layout.last : layout.first) += (shape[i] - 1) * steps[i];
  }
  ++layout.last;
  return layout;
}

bool Layout::contiguous() const {
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i])
    if (stride[i] != step) return false;
  return true;
}

std::vector<std::byte> gathered(const Layout& layout, std::size_t size, const void* data) {
  const auto places = static_cast<std::size_t>(layout.last - layout.first + 1);
  std::vector<std::byte> all(places * size);
  const auto offset = layout.first * static_cast<std::int64_t>(size);
  memory().copy(all.data(), static_cast<const char*>(data) + offset, all.size());
  if (layout.contiguous()) return all;

  std::vector<std::byte> elements(static_cast<std::size_t>(layout.count) * size);
  std::vector<std::int64_t> at(layout.shape.size(), 0);
  std::int64_t place = -layout.first;
  for (std::size_t to = 0; to < elements.size(); to += size) {
    std::memcpy(elements.data() + to, all.data() + static_cast<std::size_t>(place) * size, size);
    for (std::size_t axis = at.size(); axis-- > 0;) {
      place += layout.stride[axis];
      if (++at[axis] < layout.shape[axis]) break;
      place -= layout.stride[axis] * layout.shape[axis];
      at[axis] = 0;
    }
  }
  return elements;
}

std::vector<float> observe(jd_tensor_info& info, const void* data, bool sampled) {
  const std::uint32_t dtype = info.fingerprint.dtype;
  const std::size_t size = size_of(dtype);
  const Layout layout = layout_of(info.dims, info.shape, info.stride);
  if (size == 0 || (data == nullptr && layout.count > 0)) {
    info.fingerprint = unreadable(info, layout.count);
    return {};
  }
  std::span<const std::byte> elements(static_cast<const std::byte*>(data),
                                      static_cast<std::size_t>(layout.count) * size);
  std::vector<std::byte> copied;
  if (!memory().on_host() || !layout.contiguous()) elements = copied = gathered(layout, size, data);
  info.fingerprint = packed(value::fingerprint(static_cast<DType>(dtype), elements));
  if (!sampled || layout.count == 0) return {};
  return value::sample(static_cast<DType>(dtype), elements, layout.shape);
}

}  // namespace joulediff::record

#define JD_EXPORT extern "C" __attribute__((visibility("default")))

JD_EXPORT void jd_use_device(const jd_device* device) {
  if (jd_active() == 0 || device == nullptr) return;
  try {
    joulediff::record::memory().use(*device);
  } catch (const std::exception&) {
    return;
  }
}

JD_EXPORT void jd_fingerprint_of(jd_fingerprint* fingerprint, const void* data, uint64_t bytes) {
  using namespace joulediff;
  if (fingerprint == nullptr || record::size_of(fingerprint->dtype) == 0) return;
  if (data == nullptr) bytes = 0;
  try {
    *fingerprint = record::packed(value::fingerprint(static_cast<value::DType>(fingerprint->dtype),
                                                     {static_cast<const std::byte*>(data), bytes}));
  } catch (const std::exception&) {
    fingerprint->dtype = 0;  // no memory: nothing is known
  }
}

JD_EXPORT void jd_observe(jd_tensor_info* info, const void* data) {
  if (jd_active() == 0 || info == nullptr) return;
  try {
    using namespace joulediff::record;
    if (!is_possible(info->dims, info->shape, info->stride, size_of(info->fingerprint.dtype)))
      return tell_impossible(1);
    const bool sampled = info->role == JD_COMPUTED || info->role == JD_INPUT;
    const auto sample = joulediff::record::observe(*info, data, sampled);
    info->sample = sample.data();
    info->sample_count = static_cast<std::uint32_t>(sample.size());
    jd_tensor(info);
    info->sample = nullptr;
    info->sample_count = 0;
  } catch (const std::exception&) {
    return;  // no memory for the copy: the value goes unrecorded
  }
}
