// What distinguishes the two sides of a region: the question that every kind of cause answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/attribute.h"
#include "diagnose/compare.h"
#include "run/model.h"

namespace joulediff::diagnose {

// "aten.gelu.default" -> "aten.gelu"; overloads of one operator are one operator.
std::string base_name(std::string_view op);
// "aten.gelu" -> "gelu".
std::string_view short_name(std::string_view base);

// One side of a region: its operators that do something (views move no data).
struct Part {
  const run::Run& run;
  const attribute::Attribution& cost;
  Side side;
  std::vector<run::OperatorId> operators;
};

// Operators of one name that one side has and the other has not.
struct Extra {
  std::string name;
  std::size_t count = 0;
  double joules = 0;
};

// A region whose `dear` side costs more. The excess lies either in the extras or in calls that both
// sides make and one pays more for: then `focus` names them.
struct Question {
  Part dear;
  Part cheap;
  std::vector<Extra> extra_dear;  // most joules first
  std::vector<Extra> extra_cheap;
  std::string focus;  // empty: the excess lies in the extras

  std::vector<run::OperatorId> calls(const Part& part, std::string_view name) const;
};

Question ask(Part dear, Part cheap);

// A cause with what to do about it.
struct Answer {
  Cause cause;
  std::string advice;
};

// Each looks for one kind of cause, and says nothing where it does not find it.
std::optional<Answer> redundant_operators(const Question& question);
std::optional<Answer> redundant_elements(const Question& question);
std::optional<Answer> other_operators(const Question& question);
std::optional<Answer> other_layout(const Question& question);
std::optional<Answer> other_setting(const Question& question);
std::optional<Answer> other_dtype(const Question& question);
std::optional<Answer> other_argument(const Question& question);
std::optional<Answer> other_kernel(const Question& question);

// The first cause that answers the question; there is always one, if only an open one.
Answer find_cause(const Question& question);

// For the messages: "aten.mul, aten.pow (x3)", "activations.py:52".
std::string list(const std::vector<Extra>& extras);
std::string place_of(const Part& part, run::OperatorId op);
std::string_view letter(Side side);

// Kernels that one step of the order pass launched for an operator; empty where none were recorded.
std::vector<run::Kernel> kernels_of(const run::Run& run, run::OperatorId op);
// Whether the two sides' calls of `name` run other kernels; none where either is not known.
std::optional<bool> kernels_differ(const Question& question, std::string_view name);

}  // namespace joulediff::diagnose
