#include "run/json.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "run/fields.h"
#include "run/names.h"
#include "run/run_file.h"

namespace joulediff::run {

namespace {

using Json = nlohmann::ordered_json;
using run::fields;

constexpr std::string_view kSchema = "joulediff.run/1";

template <class T>
concept Coded = std::is_enum_v<T>;

// What JSON has no number for is a string.
template <std::floating_point T>
Json from_real(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return static_cast<double>(value);
}

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) { object_ = Json::object(); }
  void operator()(const char* name, const std::string& text) { object_[name] = text; }
  void operator()(const char* name, double value) { object_[name] = from_real(value); }
  template <std::integral T>
  void operator()(const char* name, T value) {
    object_[name] = value;
  }
  template <Coded T>
  void operator()(const char* name, T value) {
    object_[name] = run::name(value);
  }
  template <class Tag>
  void operator()(const char* name, Id<Tag> id) {
    object_[name] = element(id);
  }
  template <class T>
  void operator()(const char* name, const std::vector<T>& list) {
    Json& array = object_[name] = Json::array();
    for (const T& value : list) array.push_back(element(value));
  }
  template <std::size_t N>
  void operator()(const char* name, const std::array<std::uint32_t, N>& values) {
    object_[name] = values;
  }

 private:
  template <std::integral T>
  static Json element(T value) {
    return value;
  }
  static Json element(float value) { return from_real(value); }
  template <Coded T>
  static Json element(T value) {
    return run::name(value);
  }
  template <class Tag>
  static Json element(Id<Tag> id) {
    return id.valid() ? Json(id.value) : Json(nullptr);
  }
  Json& object_;
};

template <class T>
Json object_of(const T& record) {
  Json object;
  Writer writer(object);
  fields(writer, record);
  return object;
}

template <class T>
Json array_of(const std::vector<T>& records) {
  Json array = Json::array();
  for (const T& record : records) array.push_back(object_of(record));
  return array;
}

// A fault in the text; ends in from_json.
class Fault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Fields that the object does not have keep their defaults.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) bad("", "an object");
  }
  void operator()(const char* name, std::string& text) {
    if (const Json* found = find(name)) {
      if (!found->is_string()) bad(name, "a string");
      text = found->get<std::string>();
    }
  }
  template <class T>
    requires std::is_arithmetic_v<T> || Coded<T>
  void operator()(const char* name, T& value) {
    if (const Json* found = find(name)) read(name, *found, value);
  }
  template <class Tag>
  void operator()(const char* name, Id<Tag>& id) {
    if (const Json* found = find(name)) read(name, *found, id);
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& list) {
    for (const Json& element : array(name)) read(name, element, list.emplace_back());
  }
  template <std::size_t N>
  void operator()(const char* name, std::array<std::uint32_t, N>& values) {
    const Json& list = array(name);
    if (list.empty()) return;
    if (list.size() != N) bad(name, fmt::format("{} numbers", N));
    for (std::size_t i = 0; i < N; ++i) read(name, list[i], values[i]);
  }

  // The array `name`, empty where it is left out.
  const Json& array(const char* name) const {
    static const Json kEmpty = Json::array();
    const Json* found = find(name);
    if (found == nullptr) return kEmpty;
    if (!found->is_array()) bad(name, "a list");
    return *found;
  }
  template <class T>
  void records(const char* name, std::vector<T>& list) const {
    for (const Json& element : array(name)) {
      Reader reader(element, fmt::format("{}{}[{}].", where_, name, list.size()));
      fields(reader, list.emplace_back());
    }
  }
  // The object `name`; false where it is left out.
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void bad(const char* name, std::string_view expected) const {
    std::string place = where_ + name;
    if (place.ends_with('.')) place.pop_back();
    throw Fault(fmt::format("{}: expected {}", place.empty() ? "the text" : place, expected));
  }
  void read(const char* name, const Json& found, bool& value) const {
    if (!found.is_boolean()) bad(name, "true or false");
    value = found.get<bool>();
  }
  template <std::integral T>
  void read(const char* name, const Json& found, T& value) const {
    if (found.is_number_unsigned()) {
      const auto number = found.get<std::uint64_t>();
      if (!std::in_range<T>(number)) bad(name, "a number in range");
      value = static_cast<T>(number);
    } else {
      if (!found.is_number_integer()) bad(name, "a whole number");
      const auto number = found.get<std::int64_t>();
      if (!std::in_range<T>(number)) bad(name, "a number in range");
      value = static_cast<T>(number);
    }
  }
  template <std::floating_point T>
  void read(const char* name, const Json& found, T& value) const {
    if (found.is_number()) {
      const auto number = found.get<double>();
      if (std::isfinite(number) && std::fabs(number) > std::numeric_limits<T>::max()) {
        bad(name, "a number in range");
      }
      value = static_cast<T>(number);
    } else if (found == "NaN") {
      value = std::numeric_limits<T>::quiet_NaN();
    } else if (found == "Infinity" || found == "-Infinity") {
      value = std::numeric_limits<T>::infinity() * (found == "Infinity" ? T{1} : T{-1});
    } else {
      bad(name, "a number");
    }
  }
  template <Coded T>
  void read(const char* name, const Json& found, T& value) const {
    for (std::size_t code = 0; code < kNames<T>.size(); ++code) {
      if (found == kNames<T>[code]) {
        value = static_cast<T>(code);
        return;
      }
    }
    bad(name, fmt::format("one of {}", fmt::join(kNames<T>, ", ")));
  }
  template <class Tag>
  void read(const char* name, const Json& found, Id<Tag>& id) const {
    if (!found.is_null()) read(name, found, id.value);
  }

  const Json& object_;
  std::string where_;
};

Json block_object(const Block& block) {
  Json object = object_of(block);
  object["steps"] = array_of(block.steps);
  object["replays"] = array_of(block.replays);
  object["order_kernels"] = object_of(block.order_kernels);
  object["trace_kernels"] = object_of(block.trace_kernels);
  object["operator_times"] = object_of(block.operator_times);
  object["synchronisations"] = object_of(block.synchronisations);
  object["series"] = array_of(block.series);
  return object;
}

void read_block(const Json& element, Block& block, std::string where) {
  Reader reader(element, std::move(where));
  fields(reader, block);
  reader.records("steps", block.steps);
  reader.records("replays", block.replays);
  reader.records("series", block.series);
  const auto columns = [&](const char* name, auto& series) {
    if (const Json* found = reader.find(name)) {
      Reader inner(*found, fmt::format("{}{}.", reader.where(), name));
      fields(inner, series);
    }
  };
  columns("order_kernels", block.order_kernels);
  columns("trace_kernels", block.trace_kernels);
  columns("operator_times", block.operator_times);
  columns("synchronisations", block.synchronisations);
}

Run run_of(const Json& json) {
  Reader reader(json, "");
  std::string schema;
  reader("schema", schema);
  if (schema != kSchema) throw Fault(fmt::format("schema: expected {}", kSchema));
  Run run;
  if (const Json* manifest = reader.find("manifest")) {
    Reader inner(*manifest, "manifest.");
    fields(inner, run.manifest);
    if (const Json* facts = inner.find("facts")) {
      Reader map(*facts, "manifest.facts.");
      for (const auto& [key, value] : facts->items()) map(key.c_str(), run.manifest.facts[key]);
    }
  }
  reader.records("settings", run.settings);
  reader.records("frames", run.frames);
  reader.records("stacks", run.stacks);
  reader.records("signatures", run.signatures);
  reader.records("tensors", run.tensors);
  reader.records("operators", run.operators);
  reader.records("kernels", run.kernels);
  reader.records("devices", run.devices);
  reader.records("inputs", run.inputs);
  for (const Json& element : reader.array("blocks")) {
    const std::string where = fmt::format("blocks[{}].", run.blocks.size());
    read_block(element, run.blocks.emplace_back(), where);
  }
  reader.records("diagnostics", run.diagnostics);
  return run;
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The keys of `object` a line each, and the elements of its lists of objects a line each.
void append(std::string& out, const Json& object, const std::string& indent) {
  out += "{";
  const char* before = "\n";
  for (const auto& [key, value] : object.items()) {
    out += fmt::format("{}{} {}: ", before, indent, line(key));
    before = ",\n";
    if (!value.is_array() || value.empty() || !value[0].is_object()) {
      out += line(value);
      continue;
    }
    out += "[";
    const char* comma = "\n";
    for (const Json& element : value) {
      out += fmt::format("{}{}  ", comma, indent);
      comma = ",\n";
      if (key == "blocks") {
        append(out, element, indent + "  ");
      } else {
        out += line(element);
      }
    }
    out += fmt::format("\n{} ]", indent);
  }
  out += fmt::format("\n{}}}", indent);
}

}  // namespace

std::string to_json(const Run& run) {
  Json json;
  json["schema"] = kSchema;
  json["manifest"] = object_of(run.manifest);
  json["manifest"]["facts"] = run.manifest.facts;
  json["settings"] = array_of(run.settings);
  json["frames"] = array_of(run.frames);
  json["stacks"] = array_of(run.stacks);
  json["signatures"] = array_of(run.signatures);
  json["tensors"] = array_of(run.tensors);
  json["operators"] = array_of(run.operators);
  json["kernels"] = array_of(run.kernels);
  json["devices"] = array_of(run.devices);
  json["inputs"] = array_of(run.inputs);
  json["blocks"] = Json::array();
  for (const Block& block : run.blocks) json["blocks"].push_back(block_object(block));
  json["diagnostics"] = array_of(run.diagnostics);
  std::string out;
  append(out, json, "");
  return out + "\n";
}

Result<Run> from_json(std::string_view text) try {
  Run run = run_of(Json::parse(text));
  JD_TRY(validate(run));
  return run;
} catch (const Fault& fault) {
  return fail(ExitCode::bad_input, printable(fault.what()));
} catch (const Json::exception& error) {
  return fail(ExitCode::bad_input, fmt::format("not JSON: {}", printable(error.what())));
}

}  // namespace joulediff::run
