// Names for the addresses of native call paths: from the files that were mapped into the process,
// after it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/spool_contents.h"
#include "run/model.h"

namespace joulediff::lab {

class Symbols {
 public:
  // Files that are gone, or that are no longer those of the process (by build id), name nothing.
  explicit Symbols(const std::vector<SpoolModule>& modules);
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // The call before a return address: source file and line where the module has debugging
  // information, else the module's file name and 0; the function demangled, else its offset in the
  // module ("+0x1f30").
  run::Frame frame(std::uint64_t return_address);

  // Innermost first, from the program's call into the CUDA runtime on: the driver's own frames and
  // the recorder's are left out.
  std::vector<run::Frame> call_path(const std::vector<std::uint64_t>& return_addresses);

 private:
  struct Files;
  const SpoolModule* module_of(std::uint64_t address) const;

  std::vector<SpoolModule> modules_;  // by begin
  std::unique_ptr<Files> files_;
};

}  // namespace joulediff::lab
