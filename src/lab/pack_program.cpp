#include "lab/pack_program.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "lab/diagnostics.h"
#include "lab/stack_tree.h"
#include "run/checks.h"

namespace joulediff::lab {
namespace {

using nlohmann::json;

// Facts come from plug-ins that we wrote, in processes that we did not: nothing here may throw.
json parse(const std::string& text) {
  return json::parse(text, nullptr, false);
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

template <class Number>
std::optional<Number> number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<Number>();
}

class Program {
 public:
  Program(run::Run& run, const SpoolContents& spool) : run_(run), spool_(spool) {}

  void take() {
    for (const SpoolFact& fact : spool_.facts) take_fact(fact);
    std::sort(run_.settings.begin(), run_.settings.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    for (const SpoolTensor& tensor : spool_.tensors) take_tensor(tensor);
    if (!impossible_.empty())
      diagnose(run_, Severity::warning, "record.impossible_value",
               "values that cannot be are left out, the first of them as " + first_impossible_,
               impossible_.size());
    // A second step of the values pass starts at index 0 again; the first is the one kept.
    for (const SpoolOperator& op : spool_.operators) {
      if (op.index != run_.operators.size()) break;
      take_operator(op);
    }
    const auto left = spool_.operators.size() - run_.operators.size();
    if (left > 0)
      diagnose(run_, Severity::note, "record.more_values",
               "operators of the values pass after its first step are left out", left);
  }

 private:
  void take_fact(const SpoolFact& fact) {
    if (fact.topic == "diagnostic") return;
    const json object = parse(fact.json);
    if (!object.is_object()) {
      diagnose(run_, Severity::warning, "record.bad_fact",
               "a fact of topic " + fact.topic + " is not a JSON object and is left out");
    } else if (fact.topic == "manifest") {
      take_manifest(object);
    } else if (fact.topic == "setting") {
      const std::string key = text(object, "key");
      if (!key.empty() && setting_keys_.insert(key).second)
        run_.settings.push_back({key, text(object, "value")});
    } else if (fact.topic == "stack") {
      take_stack(object);
    }
  }

  void take_manifest(const json& object) {
    run::Manifest& manifest = run_.manifest;
    const std::map<std::string_view, std::string*> known{{"label", &manifest.label},
                                                         {"framework", &manifest.framework},
                                                         {"device", &manifest.device},
                                                         {"device_uuid", &manifest.device_uuid},
                                                         {"work_unit", &manifest.work.unit}};
    for (const auto& [key, value] : object.items()) {
      if (!value.is_string() || value.get_ref<const std::string&>().empty()) continue;
      const auto field = known.find(key);
      (field != known.end() ? *field->second : manifest.facts[key]) = value.get<std::string>();
    }
    if (const auto work = number<double>(object, "work_per_step"); work && *work > 0)
      manifest.work.per_step = *work;
  }

  void take_stack(const json& object) {
    const auto id = number<std::uint64_t>(object, "id");
    const auto frames = object.find("frames");
    if (!id || frames == object.end() || !frames->is_array()) return;
    std::vector<run::Frame> path;
    for (const json& frame : *frames)
      if (frame.is_array() && frame.size() == 3 && frame[0].is_string() &&
          frame[1].is_number_unsigned() && frame[2].is_string())
        path.push_back({frame[0], frame[1].get<std::uint32_t>(), frame[2]});
    stacks_[*id] = tree_.find(path);
  }

  void take_tensor(const SpoolTensor& spooled) {
    const run::Tensor& t = spooled.tensor;
    if (const Status fit = run::check_tensor(t, spooled.id); !fit) {
      if (impossible_.empty()) first_impossible_ = fit.error().message;
      impossible_.insert(spooled.id);
      return;
    }
    const auto [found, fresh] = geometries_.try_emplace(
        {t.storage, t.version, t.offset, t.shape, t.stride}, run::TensorId(run_.tensors.size()));
    if (fresh) run_.tensors.push_back(t);
    tensors_[spooled.id] = found->second;
  }

  run::TensorId tensor_of(std::uint64_t id) {
    const auto found = tensors_.find(id);
    if (found != tensors_.end()) return found->second;
    if (impossible_.contains(id)) return {};
    diagnose(run_, Severity::warning, "record.unknown_tensor",
             "operators name tensors of which nothing was recorded; they are left out");
    return {};
  }

  void take_operator(const SpoolOperator& spooled) {
    const json object = parse(spooled.json);
    run::Operator op;
    op.name = spooled.name;
    for (std::uint64_t id : spooled.inputs)
      if (const run::TensorId tensor = tensor_of(id); tensor.valid()) {
        op.inputs.push_back(tensor);
        seen_.insert(tensor.value);
      }
    // A value that was there before (a view that is its own source, such as detach) is not made
    // anew: it keeps the producer that it has.
    for (std::uint64_t id : spooled.outputs)
      if (const run::TensorId tensor = tensor_of(id);
          tensor.valid() && seen_.insert(tensor.value).second)
        op.outputs.push_back(tensor);
    if (object.is_object()) {
      op.signature = signature_of(text(object, "signature"));
      if (const auto id = number<std::uint64_t>(object, "stack"))
        if (const auto stack = stacks_.find(*id); stack != stacks_.end()) op.stack = stack->second;
      const auto forward = number<std::int64_t>(object, "forward");
      if (forward && *forward >= 0 && *forward < std::int64_t{spooled.index})
        op.forward = run::OperatorId(static_cast<std::size_t>(*forward));
      const std::string phase = text(object, "phase");
      op.phase = phase == "backward"    ? run::Phase::backward
                 : phase == "optimizer" ? run::Phase::optimizer
                                        : run::Phase::forward;
      const auto view = object.find("view");
      op.view = view != object.end() && view->is_boolean() && view->get<bool>();
      op.module = text(object, "module");
      if (const auto arguments = object.find("arguments"); arguments != object.end())
        op.arguments = arguments->dump(-1, ' ', false, json::error_handler_t::replace);
    } else {
      diagnose(run_, Severity::warning, "record.bad_fact",
               "what was recorded of an operator is not a JSON object; its name alone is kept");
    }
    run_.operators.push_back(std::move(op));
  }

  run::SignatureId signature_of(const std::string& signature) {
    if (signature.empty()) return {};
    const auto [found, fresh] =
        signatures_.try_emplace(signature, run::SignatureId(run_.signatures.size()));
    if (fresh) run_.signatures.push_back({signature});
    return found->second;
  }

  run::Run& run_;
  const SpoolContents& spool_;
  std::set<std::string> setting_keys_;
  StackTree tree_{run_};
  std::map<std::uint64_t, run::StackId> stacks_;  // by the plug-in's id
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::vector<std::int64_t>,
                      std::vector<std::int64_t>>,
           run::TensorId>
      geometries_;
  std::map<std::uint64_t, run::TensorId> tensors_;  // by the plug-in's id
  std::set<std::uint64_t> impossible_;              // likewise: what is left out
  std::string first_impossible_;
  std::map<std::string, run::SignatureId> signatures_;
  std::set<std::uint32_t> seen_;  // tensors read or made by an operator so far
};

}  // namespace

void take_program(run::Run& run, const SpoolContents& spool) {
  Program(run, spool).take();
}

void take_diagnostics(run::Run& run, const SpoolContents& spool) {
  for (const SpoolFact& fact : spool.facts) {
    if (fact.topic != "diagnostic") continue;
    const json object = parse(fact.json);
    if (!object.is_object()) continue;
    const std::string severity = text(object, "severity");
    diagnose(run, {severity == "error"     ? Severity::error
                   : severity == "warning" ? Severity::warning
                                           : Severity::note,
                   text(object, "rule"), text(object, "message"), 1, text(object, "remedy")});
  }
}

}  // namespace joulediff::lab
