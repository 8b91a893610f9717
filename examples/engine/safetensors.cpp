#include "safetensors.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace engine {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr int kMostParts = 100'000;
constexpr std::uint64_t kMost = std::uint64_t{1} << 48;  // elements and bytes

std::string text(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t n : shape) {
    if (out.size() > 1) out += ',';
    out += std::to_string(n);
  }
  out += ']';
  return out;
}

// A name in a file may hold anything; a terminal gets plain text.
std::string printable(std::string text) {
  for (char& c : text)
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte >= 0x7f) c = '?';
  return text;
}

std::FILE* opened(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool special = !error && !std::filesystem::is_regular_file(status) &&
                       status.type() != std::filesystem::file_type::not_found;
  if (special)
    throw FileError(path + (std::filesystem::is_directory(status)
                                ? ": it is a directory: give the file in it"
                                : ": it is no regular file"));
  return std::fopen(path.c_str(), "rb");
}

}  // namespace

// The part of JSON that headers are made of: objects of strings, numbers and lists of numbers.
class Safetensors::Header {
 public:
  Header(const Safetensors& file, const std::string& header) : file_(file), text_(header) {}

  template <class Member>
  void object(Member member) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':');
      member(key);
    } while (take(','));
    expect('}');
  }

  std::string string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      out += text_[at_++];
    }
    if (at_ == text_.size()) bad("a string without an end");
    ++at_;
    return out;
  }

  std::uint64_t number() {
    blanks();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > kMost) bad("a number that is too large");
    }
    if (at_ == begin) bad("no number where one is due");
    return value;
  }

  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> all;
    expect('[');
    if (take(']')) return all;
    do all.push_back(number());
    while (take(','));
    expect(']');
    return all;
  }

  void end() {
    blanks();
    if (at_ != text_.size()) bad("more after its end");
  }

  [[noreturn]] void bad(const char* what) {
    file_.fail("its header has " + std::string(what) + " at byte " + std::to_string(8 + at_));
  }

 private:
  void blanks() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_] != 0) ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad((std::string("no ") + c + " where one is due").c_str());
  }

  const Safetensors& file_;
  const std::string& text_;
  std::size_t at_ = 0;
};

Safetensors::Safetensors(const std::string& path) : path_(path), file_(opened(path)) {
  if (!file_) fail(std::strerror(errno));
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail("it is no regular file");
  const long size = std::ftell(file_.get());
  std::rewind(file_.get());
  unsigned char prefix[8];
  if (size < 8 || std::fread(prefix, 1, 8, file_.get()) != 8)
    fail("it is too short for a safetensors file");
  std::uint64_t length = 0;
  for (int i = 8; i-- > 0;) length = length << 8 | prefix[i];
  if (length > kLongestHeader || length > static_cast<std::uint64_t>(size) - 8)
    fail("its header does not fit into it: it is no safetensors file, or cut short");
  data_begin_ = 8 + length;
  data_size_ = static_cast<std::uint64_t>(size) - data_begin_;

  std::string json(length, '\0');
  if (std::fread(json.data(), 1, length, file_.get()) != length) fail("its header cannot be read");
  Header header(*this, json);
  header.object([&](const std::string& name) {
    if (name == "__metadata__")
      return header.object([&](const std::string& key) { metadata_[key] = header.string(); });
    Entry& entry = entries_[name];
    header.object([&](const std::string& key) {
      if (key == "dtype") {
        entry.dtype = header.string();
      } else if (key == "shape") {
        for (const std::uint64_t n : header.numbers())
          entry.shape.push_back(static_cast<std::int64_t>(n));
      } else if (key == "data_offsets") {
        const auto offsets = header.numbers();
        if (offsets.size() != 2) header.bad("data_offsets that are not two");
        entry.begin = offsets[0];
        entry.end = offsets[1];
      } else {
        header.bad("an unknown key");
      }
    });
    check(name, entry);
  });
  header.end();
}

void Safetensors::fail(const std::string& what) const {
  throw FileError(path_ + ": " + printable(what));
}

void Safetensors::check(const std::string& name, const Entry& entry) const {
  if (entry.begin > entry.end || entry.end > data_size_)
    fail("the bytes of " + name + " lie outside it: it is cut short or damaged");
  std::uint64_t count = 1;
  for (const std::int64_t n : entry.shape) {
    if (n > 0 && count > kMost / static_cast<std::uint64_t>(n)) fail(name + " is too large");
    count *= static_cast<std::uint64_t>(n);
  }
  if (entry.dtype == "F32" && count * sizeof(float) != entry.end - entry.begin)
    fail(name + " has a shape that does not fit its bytes");
}

const Safetensors::Entry& Safetensors::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("it has no tensor " + name + ": it is not of this model");
  return found->second;
}

const std::vector<std::int64_t>& Safetensors::shape(const std::string& name) const {
  return entry(name).shape;
}

std::vector<float> Safetensors::read(const std::string& name,
                                     const std::vector<std::int64_t>& shape) const {
  const Entry& found = entry(name);
  if (found.dtype != "F32") fail(name + " is " + found.dtype + ": save the model in float32 (F32)");
  if (found.shape != shape)
    fail(name + " has the shape " + text(found.shape) + " where " + text(shape) + " is due");
  std::vector<float> values((found.end - found.begin) / sizeof(float));
  const auto at = static_cast<long>(data_begin_ + found.begin);
  if (std::fseek(file_.get(), at, SEEK_SET) != 0 ||
      std::fread(values.data(), sizeof(float), values.size(), file_.get()) != values.size())
    fail(name + " cannot be read");
  return values;
}

int Safetensors::count_of(const std::string& prefix) const {
  int count = 0;
  for (const auto& [name, entry] : entries_) {
    if (name.rfind(prefix, 0) != 0) continue;
    const char* const begin = name.data() + prefix.size();
    const char* const end = name.data() + name.size();
    int index = 0;
    const auto [rest, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && rest != end && *rest == '.' && index >= 0 && index < kMostParts)
      count = std::max(count, index + 1);
  }
  return count;
}

std::string Safetensors::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found != metadata_.end() ? found->second : "";
}

}  // namespace engine
