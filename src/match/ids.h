// Small ascending sets of indices: slices and neighbourhoods, which hold a few of many thousands.
#pragma once

#include <cstdint>
#include <functional>

#include <boost/container/flat_set.hpp>
#include <boost/container/small_vector.hpp>

namespace joulediff::match {

using Ids = boost::container::flat_set<std::uint32_t, std::less<>,
                                       boost::container::small_vector<std::uint32_t, 4>>;

inline void unite(Ids& into, const Ids& more) {
  if (into.empty())
    into = more;
  else
    into.insert(boost::container::ordered_unique_range, more.begin(), more.end());
}

}  // namespace joulediff::match
