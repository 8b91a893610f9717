// With AVX2 (CMakeLists.txt).
#include "value/gather.h"

namespace joulediff::value {

void gather_avx2(const float* x, std::size_t n, Gathered& result) {
  gather<Wide>(x, n, result);
}

}  // namespace joulediff::value
