// What a tensor in memory holds: its elements, wherever they lie, as a fingerprint and a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "joulediff/record.h"

namespace joulediff::record {

// The memory that an engine computes in: the host's, or that of the device it has named.
class Memory {
 public:
  void use(const jd_device& device);
  bool of_device() const { return named_; }
  bool on_host() const { return device_.copy == nullptr; }
  const std::string& name() const { return name_; }
  void copy(void* to, const void* from, std::size_t bytes) const;
  void synchronize() const;
  bool spins() const { return device_.spin != nullptr; }
  void spin() const { device_.spin(device_.context); }

 private:
  jd_device device_{};
  bool named_ = false;
  std::string name_ = "cpu";
};
Memory& memory();

std::size_t size_of(std::uint32_t dtype);  // bytes of an element; 0: its values cannot be read

// The elements of a tensor by where they lie. Axes of length 1 or stride 0 are left out, as in
// docs/fingerprint.md.
struct Layout {
  std::vector<std::int64_t> shape, stride;
  std::int64_t count = 1;  // elements
  std::int64_t first = 0;  // of the elements' places, in elements from the first of the tensor
  std::int64_t last = -1;  // last < first: it has none
  bool contiguous() const;
};
// False: no memory holds a tensor like that. Of one that none holds nothing else may be asked.
bool is_possible(std::uint32_t dims, const std::int64_t* shape, const std::int64_t* stride,
                 std::size_t size);
Layout layout_of(std::uint32_t dims, const std::int64_t* shape, const std::int64_t* stride);

// Its elements one after another.
std::vector<std::byte> gathered(const Layout& layout, std::size_t size, const void* data);

// Fills info.fingerprint, whose dtype says how to read the memory; the values of a sample where
// `sampled`.
std::vector<float> observe(jd_tensor_info& info, const void* data, bool sampled);

}  // namespace joulediff::record
