// Kernels of a run by what they are, as the run grows.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>

#include "run/model.h"

namespace joulediff::lab {

class KernelIds {
 public:
  explicit KernelIds(run::Run& run) : run_(run) {
    for (std::size_t i = 0; i < run.kernels.size(); ++i)
      ids_.emplace(key(run.kernels[i]), run::KernelId(i));
  }
  run::KernelId find(const run::Kernel& kernel) {
    const auto [found, fresh] = ids_.try_emplace(key(kernel), run::KernelId(run_.kernels.size()));
    if (fresh) run_.kernels.push_back(kernel);
    return found->second;
  }

 private:
  using Key = std::tuple<std::string, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>,
                         run::KernelKind>;
  static Key key(const run::Kernel& k) { return {k.name, k.grid, k.block, k.kind}; }

  run::Run& run_;
  std::map<Key, run::KernelId> ids_;
};

}  // namespace joulediff::lab
