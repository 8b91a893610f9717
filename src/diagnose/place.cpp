#include "diagnose/place.h"

#include <algorithm>
#include <array>
#include <string>

namespace joulediff::diagnose {
namespace {

constexpr std::array<std::string_view, 8> kRuntimes = {
    "torch", "functorch", "jax", "jaxlib", "tensorflow", "onnxruntime", "triton", "joulediff"};

// What follows the last `folders` ("python/joulediff/") among the folders of a file, whether the
// file's name is absolute or as a run has it (docs/recording.md: from the package's, the library's
// or the program's folder on); none where it lies in no such folder.
std::optional<std::string_view> after(std::string_view file, std::string_view folders) {
  for (std::size_t at = file.rfind(folders); at != std::string_view::npos;
       at = file.rfind(folders, at - 1)) {
    if (at == 0 || file[at - 1] == '/') return file.substr(at + folders.size());
  }
  return std::nullopt;
}

// "lib/python3.11/threading.py" and the like.
bool is_standard_library(std::string_view file) {
  const std::optional<std::string_view> version = after(file, "lib/python");
  if (!version) return false;
  const std::string_view rest = *version;
  return !rest.empty() && rest.front() >= '2' && rest.front() <= '9' &&
         rest.find('/') != std::string_view::npos;
}

Place to_place(const run::Frame& frame) {
  return {frame.file, frame.line, frame.function};
}

}  // namespace

std::string_view within_packages(std::string_view file) {
  for (const std::string_view folder : {"site-packages/", "dist-packages/"})
    if (const auto package = after(file, folder)) return *package;
  return file;
}

Origin origin(std::string_view file) {
  // "<frozen importlib>", "<eval_with_key>.1"; but "<stdin>" is what a person typed.
  if (file.empty() || (file.front() == '<' && file != "<stdin>")) return Origin::runtime;
  if (after(file, "python/joulediff/")) return Origin::runtime;
  if (const std::string_view package = within_packages(file); package != file) {
    const std::string_view top = package.substr(0, package.find('/'));
    const bool runtime = std::find(kRuntimes.begin(), kRuntimes.end(), top) != kRuntimes.end();
    return runtime ? Origin::runtime : Origin::library;
  }
  return is_standard_library(file) ? Origin::runtime : Origin::user;
}

Places places(const run::Run& run, run::OperatorId op) {
  const run::Operator* called = &run.operators[op.index()];
  if (called->forward.valid()) called = &run.operators[called->forward.index()];
  Places found;
  if (!called->stack.valid()) return found;
  for (const run::FrameId id : run::call_path(run, called->stack)) {
    const run::Frame& frame = run.frames[id.index()];
    const Origin whose = origin(frame.file);
    if (whose == Origin::runtime) continue;
    if (!found.where) found.where = to_place(frame);
    if (whose != Origin::user) continue;
    found.called_from = to_place(frame);
    break;
  }
  return found;
}

}  // namespace joulediff::diagnose
