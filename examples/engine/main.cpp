// engine MODEL.safetensors: greedy decoding with a GPT-2, and the steps of it recorded.

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>

#include "kernels.h"
#include "model.h"

namespace {

using engine::Wasteful;

constexpr const char* kUsage =
    "usage: engine MODEL.safetensors [--prompt 1,2,3] [--tokens N] [--steps N] [--heads N]\n"
    "              [--wasteful gelu|transpose|no-cache]\n";

struct Options {
  std::string model;
  std::vector<std::int32_t> prompt{0, 1, 2, 3, 4, 5, 6, 7};
  int tokens = 8;
  int steps = 1;
  int heads = 0;  // 0: what the file says
  Wasteful wasteful = Wasteful::nothing;
  bool help = false;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0 || value > 1'000'000'000)
    throw UsageError(text + " is no number");
  return static_cast<int>(value);
}

std::vector<std::int32_t> numbers(const std::string& list) {
  std::vector<std::int32_t> all;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) all.push_back(number(item));
  return all;
}

Wasteful wasteful(const std::string& name) {
  if (name == "gelu") return Wasteful::gelu;
  if (name == "transpose") return Wasteful::transpose;
  if (name == "no-cache") return Wasteful::no_cache;
  throw UsageError("no wasteful variant " + name);
}

Options options_of(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--help") {
      options.help = true;
      return options;
    }
    if (name.rfind("--", 0) != 0) {
      options.model = name;
      continue;
    }
    if (++i == count) throw UsageError(name + " needs a value");
    const std::string value = arguments[i];
    if (name == "--prompt")
      options.prompt = numbers(value);
    else if (name == "--tokens")
      options.tokens = number(value);
    else if (name == "--steps")
      options.steps = number(value);
    else if (name == "--heads")
      options.heads = number(value);
    else if (name == "--wasteful")
      options.wasteful = wasteful(value);
    else
      throw UsageError("no option " + name);
  }
  if (options.model.empty()) throw UsageError("no model");
  if (options.prompt.empty() || options.tokens < 1)
    throw UsageError("a prompt and --tokens of at least 1 are needed");
  return options;
}

void run(const Options& options) {
  const engine::Recorder recorder;
  const engine::Safetensors file(options.model);
  engine::Model model(file, options.heads, options.wasteful, recorder);
  const int length = static_cast<int>(options.prompt.size());
  for (const std::int32_t token : options.prompt)
    if (token >= model.vocabulary())
      throw UsageError("token " + std::to_string(token) + " is not in the vocabulary of " +
                       std::to_string(model.vocabulary()));
  if (length + options.tokens > model.longest())
    throw UsageError("the model sees at most " + std::to_string(model.longest()) + " tokens");

  recorder.fact("manifest", R"({"framework":"engine 1","work_unit":"token","work_per_step":)" +
                                std::to_string(options.tokens) + "}");
  const std::string inputs = "tokens int32 [1," + std::to_string(length) + "]";
  std::vector<std::int32_t> generated;
  for (int step = 0; step < options.steps || recorder.wants_steps(); ++step) {
    recorder.step_begin(inputs);
    generated = model.generate(options.prompt, options.tokens);
    recorder.step_end();
  }
  for (const std::int32_t token : generated) std::printf("%d ", token);
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Options options = options_of(count, arguments);
    if (options.help)
      std::fputs(kUsage, stdout);
    else
      run(options);
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "engine: %s\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine: %s\n", error.what());
    return 3;
  }
}
