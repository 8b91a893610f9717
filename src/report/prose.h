// Sentences: wrapped to the width of a report, with numbers as people write them.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/compare.h"

namespace joulediff::report {

constexpr std::size_t kWidth = 100;

// "  what    A runs ...\n          and ...\n": a label of 2 + `label_width` columns, then the text.
std::string entry(std::string_view label, std::string_view text, std::size_t label_width = 9);

// "3.4 %", and "+3.4 %": with one decimal, so that the ends of an interval can be told apart.
std::string percent(double ratio);
std::string with_sign(double ratio);

// "-77.1 % (-79.0 % to -75.2 %)".
std::string with_interval(const diagnose::Difference& difference);

// "0.92 J (0.80 J to 1.04 J)".
std::string with_interval(const Energy& energy);

std::string line_of(const diagnose::Place& place);  // "transformers/activations.py:52"
std::string text(const diagnose::Place& place);     // "transformers/activations.py:52 in forward"

}  // namespace joulediff::report
