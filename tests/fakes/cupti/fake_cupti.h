// What a test does to the fake libcupti: it plays the program that launches, and the device.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct FakeLaunch {
  int kind;          // CUPTI's: a kernel, a copy, a set or a wait
  const char* name;  // of a kernel
  std::uint64_t start, end;
  std::uint32_t stream, grid, block;
  std::uint8_t copy_kind;  // or the kind of a wait
  std::uint64_t bytes;
  std::uint32_t device, context;
  std::uint64_t graph_node;
};

// One API call of the calling thread that launches something (or, with null, launches nothing).
// Returns its correlation id.
std::uint32_t fake_cupti_call(const FakeLaunch* launch);

// A call that led to what lies in a buffer that is played.
void fake_cupti_call_as(std::uint32_t correlation);

// The device's buffers lose `count` records.
void fake_cupti_drop(std::size_t count);

// A bit for each kind that is enabled.
std::uint64_t fake_cupti_enabled(void);

// Another tool in this process. It subscribes (true: it could) under a name; it registers for the
// buffers, as Kineto does, and thereby gets all that come from then on; it leaves.
bool fake_cupti_rival_subscribes(const char* name);
void fake_cupti_rival_registers(void);
void fake_cupti_rival_leaves(void);
// How many buffers the rival got.
std::size_t fake_cupti_rival_buffers(void);

// Whether somebody holds the subscription, and how many API functions, or whole domains, are
// watched.
bool fake_cupti_subscribed(void);
std::size_t fake_cupti_watched(void);

// Hands over the buffer that a real libcupti filled, from a file of JOULEDIFF_CUPTI_RAW.
// False: there is no such file.
bool fake_cupti_play(const char* path);

// The size of a record of this kind in that version of CUPTI.
std::size_t fake_cupti_record_bytes(int kind, std::uint32_t version);

}  // extern "C"
