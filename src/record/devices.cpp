#include "record/devices.h"

#include <cstdio>
#include <dlfcn.h>

namespace joulediff::record {
namespace {

constexpr std::size_t kUuidBytes = 16;

// A slice of a board has a UUID of its own, and CUDA names it after its profile.
std::string text_of(const unsigned char* uuid, const std::string& name) {
  std::string text = name.find(" MIG ") != std::string::npos ? "MIG-" : "GPU-";
  for (std::size_t i = 0; i < kUuidBytes; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", unsigned{uuid[i]});
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += two;
  }
  return text;
}

}  // namespace

std::vector<Device> devices_of_process() {
  std::vector<Device> devices;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return devices;
  const auto get = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  };
  int (*count_of)(int*) = nullptr;
  int (*device_of)(int*, int) = nullptr;
  int (*uuid_of)(unsigned char*, int) = nullptr;
  int (*name_of)(char*, int, int) = nullptr;
  int count = 0;
  if (get(count_of, "cuDeviceGetCount") && get(device_of, "cuDeviceGet") &&
      get(uuid_of, "cuDeviceGetUuid_v2") && get(name_of, "cuDeviceGetName") &&
      count_of(&count) == 0)
    for (int i = 0; i < count; ++i) {
      int device = 0;
      unsigned char uuid[kUuidBytes] = {};
      char name[256] = "";
      if (device_of(&device, i) != 0 || uuid_of(uuid, device) != 0 ||
          name_of(name, sizeof name, device) != 0)
        continue;
      devices.push_back({static_cast<std::uint32_t>(i), text_of(uuid, name), name});
    }
  dlclose(library);
  return devices;
}

}  // namespace joulediff::record
