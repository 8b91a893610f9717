// With what every processor has (CMakeLists.txt).
#include "value/gather.h"

namespace joulediff::value {

void gather_plain(const float* x, std::size_t n, Gathered& result) {
  gather<Wide>(x, n, result);
}

}  // namespace joulediff::value
