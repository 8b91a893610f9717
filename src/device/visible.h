// Which of a machine's devices a program will see, as CUDA_VISIBLE_DEVICES and its like say it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"

namespace joulediff::device {

// Places in `ids` (UUIDs, in the order in which the driver counts) of the devices that `list`
// shows; null shows all. An entry is an index, an id or the beginning of one. As the runtimes do,
// an entry that names nothing ends the list. What the list asks for and cannot be given is noted;
// `variable` is what to call it there.
std::vector<std::size_t> visible_devices(const char* list, const std::vector<std::string>& ids,
                                         std::string_view variable, Diagnostics& notes);

// True: the list picks out devices by their number.
bool picks_by_index(const char* list);

}  // namespace joulediff::device
