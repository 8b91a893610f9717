// The hardware's reference: the least time it is known to need for the same arithmetic and bytes,
// and what that least is bound by. Peaks are the vendors' published dense ones, at boost clock; no
// program reaches them all at once, so a distance of 1.2 is a good one. Data that is still in the
// L2 cache needs no HBM: then the distance can be under 1.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "attribute/attribute.h"
#include "run/model.h"

namespace joulediff::diagnose {

enum class Bound { matrix, vector, hbm, launch, host };
std::string_view name(Bound bound);

// Peaks in operations and bytes a second; 0: not published.
struct Hardware {
  std::string_view name;  // what the driver's name of the board holds
  double matrix_16 = 0;   // bf16 and fp16
  double matrix_8 = 0;    // fp8 and int8
  double matrix_tf32 = 0;
  double matrix_64 = 0;
  double vector_32 = 0;
  double hbm = 0;
};

// None: no figures are known for that board.
const Hardware* hardware_of(std::string_view device);

// Products of fp32 may be made in TF32 where the program allows it.
bool allows_tf32(const run::Run& run, bool convolution);

struct Reference {
  Seconds seconds;           // least for these operators, in one step
  Bound bound = Bound::hbm;  // what most of that is
  double distance = 0;       // their seconds / reference
};

// None where the board or the operators' tensors are not known, or where they took no time.
std::optional<Reference> reference(const run::Run& run, const attribute::Attribution& costs,
                                   std::span<const run::OperatorId> operators);

}  // namespace joulediff::diagnose
