// Floors and reference coefficients from the windows of calibration loads, which say in their
// signatures what they do: "calibrate.matmul(dtype=bf16, values=random, flop=1.1e12)".
#pragma once

#include "meter/calibrate.h"

namespace joulediff::meter {

void add_floors(const run::Run& run, const Meter& meter, Profile& profile);
void add_coefficients(const run::Run& run, const Meter& meter, Profile& profile);

}  // namespace joulediff::meter
