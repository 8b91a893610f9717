// Result<T>: how expected failure travels. An Error is one line for a person (what, where, what to
// do) with the context that the callers added, and the exit code that the command ends with.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace joulediff {

// The documented exit codes of the command (docs/exit-codes.md).
enum class ExitCode {
  fine = 0,
  gate_failed = 1,
  usage = 2,
  bad_input = 3,
  environment = 4,
  not_comparable = 5,
  gate_undecided = 6,
};

struct Error {
  ExitCode code = ExitCode::bad_input;
  std::string message;

  // "reading a.jd: operator 7: NaN duration"
  Error within(std::string_view context) && {
    message = std::string(context) + ": " + message;
    return std::move(*this);
  }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ExitCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

}  // namespace joulediff

// Returns the error of `expression` from the enclosing function, or assigns its value.
#define JD_CONCAT_(a, b) a##b
#define JD_CONCAT(a, b) JD_CONCAT_(a, b)
#define JD_TRY(expression)                                    \
  do {                                                        \
    if (auto jd_status = (expression); !jd_status)            \
      return ::joulediff::fail(std::move(jd_status).error()); \
  } while (false)
#define JD_ASSIGN(declaration, expression) \
  JD_ASSIGN_(declaration, expression, JD_CONCAT(jd_result_, __LINE__))
#define JD_ASSIGN_(declaration, expression, name)               \
  auto name = (expression);                                     \
  if (!name) return ::joulediff::fail(std::move(name).error()); \
  declaration = std::move(*name)
