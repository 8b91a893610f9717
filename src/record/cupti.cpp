#include "record/cupti.h"

#include <cstdlib>
#include <dlfcn.h>

namespace joulediff::record {
namespace {

void* find_library(std::string& why) {
  if (const char* path = std::getenv("JOULEDIFF_CUPTI"); path != nullptr && *path != '\0') {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) why = dlerror();
    return library;
  }
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};
  constexpr const char* kPaths[] = {"/usr/local/cuda/lib64/libcupti.so",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
  // Two copies in one process would each see nothing or half.
  for (const char* name : kNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  for (const char* name : kNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* path : kPaths)
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  why = "libcupti was not found";
  return nullptr;
}

}  // namespace

bool load_cupti(cupti::Functions& functions, std::uint32_t& version, std::string& why) {
  void* library = find_library(why);
  if (library == nullptr) return false;
  const char* missing = nullptr;
  const auto get = [&](auto& function, const char* name, bool needed = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && needed) missing = name;
  };
  get(functions.GetVersion, "cuptiGetVersion");
  get(functions.GetResultString, "cuptiGetResultString");
  get(functions.ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
  get(functions.ActivityEnable, "cuptiActivityEnable");
  get(functions.ActivityDisable, "cuptiActivityDisable");
  get(functions.ActivityFlushAll, "cuptiActivityFlushAll");
  get(functions.ActivityGetNextRecord, "cuptiActivityGetNextRecord");
  get(functions.ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords");
  get(functions.ActivityRegisterTimestampCallback, "cuptiActivityRegisterTimestampCallback", false);
  get(functions.Subscribe, "cuptiSubscribe", false);
  get(functions.Subscribe_v2, "cuptiSubscribe_v2", false);
  get(functions.Unsubscribe, "cuptiUnsubscribe", false);
  get(functions.EnableCallback, "cuptiEnableCallback", false);
  get(functions.EnableDomain, "cuptiEnableDomain", false);
  if (missing != nullptr) {
    why = std::string("libcupti has no ") + missing;
    return false;
  }
  if (functions.GetVersion(&version) == cupti::kSuccess && cupti::layout_is_known(version))
    return true;
  why = "the layout of libcupti's records, version " + std::to_string(version) +
        ", is not known to this recorder (those of CUDA 12 and 13 are): update joulediff, or name "
        "another libcupti in JOULEDIFF_CUPTI";
  return false;
}

}  // namespace joulediff::record
