// Where the profiles of boards are kept between recordings: one file for each board, in the
// person's configuration folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "diagnose/noise.h"
#include "meter/calibrate.h"

namespace joulediff::lab {

// $XDG_CONFIG_HOME/joulediff/boards/UUID.json, or below ~/.config; empty where there is neither.
std::string profile_path(std::string_view uuid);

// Replaces what was kept of that board. Returns where.
Result<std::string> keep_profile(const meter::Profile& profile);

// The text of the board's profile, checked; none where none is kept or it is damaged.
std::optional<std::string> kept_profile(std::string_view uuid);

// The same of the machine's noise floor with that board: UUID.noise.json beside it.
std::string noise_path(std::string_view uuid);
Result<std::string> keep_noise(const diagnose::Noise& noise);
std::optional<diagnose::Noise> kept_noise(std::string_view uuid);

}  // namespace joulediff::lab
