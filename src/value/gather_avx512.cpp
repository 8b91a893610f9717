// With AVX-512 (CMakeLists.txt).
#include "value/gather.h"

namespace joulediff::value {

void gather_avx512(const float* x, std::size_t n, Gathered& result) {
  gather<Wide>(x, n, result);
}

}  // namespace joulediff::value
