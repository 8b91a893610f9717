#include "record/devices.h"

#include <cstdio>
#include <dlfcn.h>

namespace joulediff::record {
namespace {

struct Uuid {
  unsigned char bytes[16];
};

// A slice of a board has a UUID of its own, and CUDA names it after its profile.
std::string text_of(const Uuid& uuid, const std::string& name) {
  std::string text = name.find(" MIG ") != std::string::npos ? "MIG-" : "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", unsigned{uuid.bytes[i]});
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
  int (*uuid_of)(Uuid*, int) = nullptr;
  int (*name_of)(char*, int, int) = nullptr;
  int count = 0;
  if (get(count_of, "cuDeviceGetCount") && get(device_of, "cuDeviceGet") &&
      get(uuid_of, "cuDeviceGetUuid_v2") && get(name_of, "cuDeviceGetName") &&
      count_of(&count) == 0)
    for (int i = 0; i < count; ++i) {
      int device = 0;
      Uuid uuid{};
      char name[256] = "";
      if (device_of(&device, i) != 0 || uuid_of(&uuid, device) != 0 ||
          name_of(name, sizeof name, device) != 0)
        continue;
      devices.push_back({static_cast<std::uint32_t>(i), text_of(uuid, name), name});
    }
  dlclose(library);
  return devices;
}

}  // namespace joulediff::record
