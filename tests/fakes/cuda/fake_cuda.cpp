// A libcuda with two devices, the second of them a slice of a board. FAKE_CUDA_DOWN: it has not
// been initialised.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNotInitialized = 3;
constexpr int kDevices = 2;
constexpr int kFirst = 40;  // a device is no ordinal

bool is_down() {
  return std::getenv("FAKE_CUDA_DOWN") != nullptr;
}

}  // namespace

extern "C" {

int cuDeviceGetCount(int* count) {
  if (is_down()) return kNotInitialized;
  *count = kDevices;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = kFirst + ordinal;
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(16 * (device - kFirst) + i);
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  const char* const text = device == kFirst ? "NVIDIA H200" : "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
  std::strncpy(name, text, static_cast<std::size_t>(size) - 1);
  return 0;
}

}  // extern "C"
