// Runs with a known truth, for golden cases: a script says which values each call reads and makes,
// how long its kernel takes and what it draws; a clock and an energy counter do the rest. A value
// is named, and the same name holds the same numbers in every run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/model.h"

namespace joulediff::golden {

struct Kernel {
  std::string name;
  double microseconds = 0;
  double watts = 0;  // above static power
};

class Script {
 public:
  Script(std::string label, std::string side);

  run::Manifest& manifest() { return run_.manifest; }
  // Computed values are off by this much, relative: another rounding on each side.
  void set_noise(double relative) { noise_ = relative; }
  void set(const std::string& key, const std::string& value);

  // Where the calls that follow are made: file, line, function; innermost first.
  void at(const std::vector<run::Frame>& frames);

  run::TensorId value(const std::string& name, std::vector<std::int64_t> shape, run::Role role);
  // A view with the axes in another order.
  run::TensorId permute(run::TensorId tensor, const std::vector<std::size_t>& axes);
  run::TensorId call(const std::string& op, const std::vector<run::TensorId>& inputs,
                     const std::string& value_name, std::vector<std::int64_t> shape,
                     const Kernel& kernel, const std::string& arguments = "{}");

  // The run, recorded in these blocks of the pair; none: without any meter.
  run::Run record(const std::vector<std::uint32_t>& orders) const;

 private:
  std::vector<float> numbers(const std::string& name, std::size_t count, double noise) const;
  run::TensorId add(const std::string& name, run::Tensor tensor);
  run::Block play(std::uint32_t order) const;

  run::Run run_;
  std::vector<std::string> value_names_;          // by tensor
  std::vector<std::vector<std::int64_t>> whole_;  // by tensor: the value's own shape
  std::vector<std::vector<std::size_t>> axes_;    // by tensor: its order of the value's axes
  std::vector<Kernel> kernels_;                   // by operator; 0 microseconds: none
  double noise_ = 0;
};

}  // namespace joulediff::golden
