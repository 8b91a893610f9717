#include "lab/align.h"

#include <algorithm>

namespace joulediff::lab {

std::vector<std::uint32_t> align(std::span<const std::string_view> reference,
                                 std::span<const std::string_view> names) {
  std::vector<std::uint32_t> partner(names.size(), kNoPartner);
  const std::size_t shorter = std::min(reference.size(), names.size());
  std::size_t front = 0;
  while (front < shorter && reference[front] == names[front]) ++front;
  std::size_t back = 0;
  while (back < shorter - front &&
         reference[reference.size() - 1 - back] == names[names.size() - 1 - back])
    ++back;
  for (std::size_t i = 0; i < front; ++i) partner[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < back; ++i)
    partner[names.size() - 1 - i] = static_cast<std::uint32_t>(reference.size() - 1 - i);

  const std::span a = reference.subspan(front, reference.size() - front - back);
  const std::span b = names.subspan(front, names.size() - front - back);
  if (a.empty() || b.empty() || a.size() > kLongestSquare / b.size()) return partner;
  // length[i][j]: of the longest common subsequence of a from i on and b from j on.
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> length((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      length[i * width + j] =
          a[i] == b[j] ? length[(i + 1) * width + j + 1] + 1
                       : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j])
      partner[front + j++] = static_cast<std::uint32_t>(front + i++);
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1])
      ++i;
    else
      ++j;
  }
  return partner;
}

}  // namespace joulediff::lab
