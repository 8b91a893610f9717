// How kernels lie in the spool. A program launches the same few kernels over and over: a batch
// names each of its shapes once, and a kernel is then its shape's number, the distance of its start
// from the start before, its duration and the distance of its correlation id: some ten bytes of
// what would be 64. A batch can be read without any other.
//
// All numbers are varints (seven bits a byte, lowest first, the top bit set in all but the last);
// distances are zigzag. A kernel is: shape; where the shape is the next one that has no number yet,
// its name, pass, stream, grid[3], block[3], device and kind; distance of start; duration; distance
// of correlation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "spool/spool.h"

namespace joulediff::spool {

class KernelBatch {
 public:
  void add(const Kernel& kernel);
  std::size_t count() const { return count_; }
  std::string_view bytes() const { return bytes_; }
  void clear();

 private:
  using Shape = std::array<std::uint32_t, 11>;
  struct Hash {
    std::size_t operator()(const Shape& shape) const noexcept;
  };
  static Shape shape_of(const Kernel& kernel);
  void put(std::uint64_t number);

  std::string bytes_;
  std::size_t count_ = 0;
  std::unordered_map<Shape, std::uint32_t, Hash> shapes_;
  std::uint64_t last_start_ = 0;
  std::uint32_t last_correlation_ = 0;
};

// Appends the kernels of a batch. False: it is not one; `kernels` has those before the fault.
bool read_kernels(std::string_view batch, std::vector<Kernel>& kernels);

}  // namespace joulediff::spool
