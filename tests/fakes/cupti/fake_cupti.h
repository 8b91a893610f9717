// What a test does to the fake libcupti: it plays the program that launches, and the device.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct FakeLaunch {
  int kind;          // CUPTI's: a kernel, a copy or a set
  const char* name;  // of a kernel
  std::uint64_t start, end;
  std::uint32_t stream, grid, block;
  std::uint8_t copy_kind;
  std::uint64_t bytes;
};

// One API call of the calling thread that launches something (or, with null, launches nothing).
// Returns its correlation id.
std::uint32_t fake_cupti_call(const FakeLaunch* launch);

// The device's buffers lose `count` records.
void fake_cupti_drop(std::size_t count);

// A bit for each kind that is enabled.
std::uint64_t fake_cupti_enabled(void);

}  // extern "C"
