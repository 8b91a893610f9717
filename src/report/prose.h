// Sentences: wrapped to the width of a report, with numbers as people write them.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/compare.h"

namespace joulediff::report {

constexpr std::size_t kWidth = 100;

// "  what    A runs ...\n          and ...\n": a label of 2 + `label_width` columns, then the text.
std::string entry(std::string_view label, std::string_view text, std::size_t label_width = 9);

// "-77 % (-79 % to -75 %)".
std::string with_interval(const diagnose::Difference& difference);
std::string with_sign(double ratio);

// "0.92 J (0.80 J to 1.04 J)".
std::string with_interval(const Energy& energy);

std::string text(const diagnose::Place& place);  // "transformers/activations.py:52 in forward"

}  // namespace joulediff::report
