// Which operator of the run each call of the order pass is. An operator call of the order pass is
// the operator of the values pass with the same index and name; a program whose steps differ is
// aligned by names, and the misfits counted.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

class OrderSteps {
 public:
  // `run` and `spool` outlive it.
  OrderSteps(const run::Run& run, const SpoolContents& spool);

  // Adds the operators that no step of the values pass had, without values.
  void add_strangers(run::Run& run) const;

  run::OperatorId find(std::uint32_t step, std::uint32_t index) const;

  std::uint64_t operators() const { return operators_; }
  // Those that no step of the values pass had, and those of them on inputs that it did have.
  std::uint64_t strangers() const { return strangers_; }
  std::uint64_t unexpected() const { return unexpected_; }

 private:
  void name_strangers(const std::string& inputs, std::span<const std::string_view> names,
                      std::vector<std::uint32_t>& partners);

  const std::size_t first_new_;
  std::vector<run::Operator> new_;
  std::map<std::string, std::uint32_t> known_;  // operators of the order pass alone
  std::vector<std::string_view> reference_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> partners_;
  std::uint64_t operators_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint64_t unexpected_ = 0;
};

}  // namespace joulediff::lab
