// The engine's side of Joulediff's C ABI (docs/engines.md). The recorder is a library that is there
// only while a program is recorded; without it every call here runs its function and nothing else.
#pragma once

#include <initializer_list>
#include <source_location>
#include <string>

#include "joulediff/record.h"

namespace engine {

// A part of the model that is being computed: its path, and the calls that led there.
class Scope {
 public:
  explicit Scope(std::source_location at = std::source_location::current())
      : place_(place_of(at, nullptr)) {}

  // The part `name` of this one, which lives longer than the new scope.
  Scope in(const std::string& name,
           std::source_location at = std::source_location::current()) const {
    return {module_.empty() ? name : module_ + "." + name, place_of(at, &place_)};
  }
  const std::string& module() const { return module_; }
  const jd_place& place() const { return place_; }

  static jd_place place_of(const std::source_location& at, const jd_place* caller) {
    return {at.file_name(), at.function_name(), at.line(), 0, caller};
  }

 private:
  Scope(std::string module, jd_place place) : module_(std::move(module)), place_(place) {}
  std::string module_;
  jd_place place_;
};

// What an operator is called, where it is called, and what it is given besides tensors.
struct Call {
  const char* name;
  const Scope& scope;
  std::source_location at;
  std::string arguments;  // JSON
};

class Recorder {
 public:
  Recorder();  // loads the library where the environment names one
  ~Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void fact(const char* topic, const std::string& json) const;
  bool wants_steps() const { return library_.recording != nullptr && library_.recording() != 0; }
  void step_begin(const std::string& inputs) const;
  void step_end() const;

  template <class Execute>
  void run(const Call& call, std::initializer_list<jd_value> inputs,
           std::initializer_list<jd_value> outputs, Execute execute) const {
    const int pass = library_.pass != nullptr ? library_.pass() : JD_WARMUP;
    if (pass < 0 || pass == JD_WARMUP || pass == JD_TRACE) return execute();
    const jd_place place = Scope::place_of(call.at, &call.scope.place());
    const jd_op op{call.name,
                   call.scope.module().c_str(),
                   call.arguments.c_str(),
                   &place,
                   inputs.begin(),
                   outputs.begin(),
                   static_cast<uint32_t>(inputs.size()),
                   static_cast<uint32_t>(outputs.size()),
                   0,
                   0};
    library_.run(&op, [](void* context) { (*static_cast<Execute*>(context))(); }, &execute);
  }

 private:
  struct Library {
    decltype(&jd_active) active = nullptr;
    decltype(&jd_fact) fact = nullptr;
    decltype(&jd_use_device) use_device = nullptr;
    decltype(&jd_recording) recording = nullptr;
    decltype(&jd_step_begin) step_begin = nullptr;
    decltype(&jd_step_end) step_end = nullptr;
    decltype(&jd_pass) pass = nullptr;
    decltype(&jd_run) run = nullptr;
  };
  Library library_;
};

}  // namespace engine
