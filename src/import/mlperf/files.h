// The files of one submission: each is read once, and what could not be read is said once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/submission.h"

namespace joulediff::mlperf {

std::string sha1(std::string_view bytes);

class Files {
 public:
  Files(std::filesystem::path folder, run::Submission& submission)
      : folder_(std::move(folder)), submission_(submission) {}

  // None where there is no such file, or it cannot be read; the latter is a diagnostic.
  std::optional<std::string> read(const std::string& name);
  // The same; that it is missing is a diagnostic, too.
  std::optional<std::string> require(const std::string& name, std::string_view what_for);
  bool has(const std::string& name) const;
  // Names of the entries of a folder below, sorted; empty where there is none.
  std::vector<std::string> list(const std::string& name = ".") const;

 private:
  std::filesystem::path folder_;
  run::Submission& submission_;
};

}  // namespace joulediff::mlperf
