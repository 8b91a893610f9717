// JOULEDIFF_CUPTI_RAW=DIR keeps each buffer that CUPTI hands over, as it is, for test fixtures:
// PID-N.vVERSION.buf has its valid bytes, and PID-N.vVERSION.names what the addresses of kernel
// names in it mean, one `hexadecimal name` a line.
#pragma once

#include <cstdint>
#include <string>

#include "record/cupti_abi.h"

namespace joulediff::record {

class RawCapture {
 public:
  void start(std::uint32_t cupti_version);
  void keep(const cupti::Functions& cupti, std::uint8_t* buffer, std::size_t valid);

 private:
  std::string folder_;
  std::uint32_t version_ = 0, count_ = 0;
};

}  // namespace joulediff::record
