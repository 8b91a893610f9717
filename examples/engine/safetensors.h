// A .safetensors file: u64 length of a JSON header, the header, the tensors' bytes. Nothing in the
// file is trusted; what is wrong with it is one line in a FileError.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace engine {

struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Safetensors {
 public:
  explicit Safetensors(const std::string& path);

  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  const std::vector<std::int64_t>& shape(const std::string& name) const;
  // The elements of a float32 tensor, which must have this shape.
  std::vector<float> read(const std::string& name, const std::vector<std::int64_t>& shape) const;
  // What the file says of itself; empty where it says nothing.
  std::string metadata(const std::string& key) const;
  // One more than the largest N of its tensors PREFIX + N + ".": how many parts a model should
  // have.
  int count_of(const std::string& prefix) const;

  // Throws a FileError that names the file.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;  // of its bytes, from the end of the header
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  class Header;

  const Entry& entry(const std::string& name) const;
  void check(const std::string& name, const Entry& entry) const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t data_begin_ = 0, data_size_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace engine
