// Inputs and signals as plans write them: a number, { low, base, high }, or a course over the
// hours.
#pragma once

#include "facility/document.h"
#include "facility/plan.h"
#include "facility/series.h"

namespace joulediff::facility {

struct Kind {
  std::string unit;
  double least = 0;
  double most = 0;
};

// Makes inputs of a plan that is being read.
class InputReader {
 public:
  InputReader(Plan& plan, const Surroundings& from) : plan_(plan), from_(from) {}

  // None where the key is not there.
  Result<InputId> input(const TableReader& table, std::string_view key, const std::string& prefix,
                        const Kind& kind);
  Result<InputId> needed(const TableReader& table, std::string_view key, const std::string& prefix,
                         const Kind& kind, std::string_view what);
  InputId add(Input input);

  // Level none where the key is not there.
  Result<Signal> signal(const TableReader& table, std::string_view key, const std::string& prefix,
                        const Kind& kind, Content content, double floor = 0);

  // Relative weights by local hour, of sum 1; all equal without the key.
  Result<std::vector<double>> weights(const TableReader& table, std::string_view key);

  // What the last file of carbon intensities said of itself: "average", "marginal" or nothing.
  const std::string& carbon_kind() const { return carbon_kind_; }

 private:
  Result<Range> range(const TableReader& table, const Kind& kind) const;
  Result<std::vector<double>> numbers(const TableReader& table, std::string_view key,
                                      std::size_t count, const Kind& kind) const;
  Result<std::vector<double>> by_clock(const TableReader& table, const Kind& kind) const;
  Result<std::vector<double>> periods(const TableReader& table, const Kind& kind) const;
  Result<std::vector<double>> file(const TableReader& table, const std::string& path,
                                   Content content, Signal& signal);
  Status plausible(const TableReader& table, const Node& node, const Signal& signal,
                   Content content);

  Plan& plan_;
  const Surroundings& from_;
  std::string carbon_kind_;
};

}  // namespace joulediff::facility
