// Where in the sources an operator was called.
#pragma once

#include <optional>
#include <string_view>

#include "diagnose/compare.h"
#include "run/model.h"

namespace joulediff::diagnose {

enum class Origin { runtime, library, user };

// Whose code a file is: a runtime's (torch, jax, the standard library, ...), a library's (models
// and engines in site-packages) or the user's own tree.
Origin origin(std::string_view file);

// "transformers/activations.py" of ".../site-packages/transformers/activations.py"; a file of no
// package as it is.
std::string_view within_packages(std::string_view file);

struct Places {
  std::optional<Place> where;        // innermost frame outside the runtimes
  std::optional<Place> called_from;  // innermost frame in the user's own tree
};

// A backward operator takes its forward operator's place.
Places places(const run::Run& run, run::OperatorId op);

}  // namespace joulediff::diagnose
