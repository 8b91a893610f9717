#include "spool/kernels.h"

namespace joulediff::spool {
namespace {

std::uint64_t zigzag(std::uint64_t distance) {
  return distance << 1 ^ (0 - (distance >> 63));
}
std::uint64_t unzigzag(std::uint64_t number) {
  return number >> 1 ^ (0 - (number & 1));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  bool get(std::uint64_t& number) {
    number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool get(std::uint32_t& number) {
    std::uint64_t wide = 0;
    if (!get(wide) || wide > 0xFFFFFFFFu) return false;
    number = static_cast<std::uint32_t>(wide);
    return true;
  }

 private:
  std::string_view rest_;
};

bool get_shape(Reader& in, Kernel& k) {
  for (std::uint32_t* field : {&k.name, &k.pass, &k.stream, &k.grid[0], &k.grid[1], &k.grid[2],
                               &k.block[0], &k.block[1], &k.block[2], &k.device, &k.kind})
    if (!in.get(*field)) return false;
  return true;
}

}  // namespace

KernelBatch::Shape KernelBatch::shape_of(const Kernel& k) {
  return {k.name,     k.pass,     k.stream,   k.grid[0], k.grid[1], k.grid[2],
          k.block[0], k.block[1], k.block[2], k.device,  k.kind};
}

std::size_t KernelBatch::Hash::operator()(const Shape& shape) const noexcept {
  std::uint64_t hash = 0;
  for (const std::uint32_t field : shape) {
    hash = (hash ^ field) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

void KernelBatch::put(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
  bytes_ += static_cast<char>(number);
}

void KernelBatch::add(const Kernel& kernel) {
  const Shape shape = shape_of(kernel);
  const auto [known, is_new] =
      shapes_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  put(known->second);
  if (is_new)
    for (const std::uint32_t field : shape) put(field);
  put(zigzag(kernel.start_ns - last_start_));
  put(kernel.end_ns - kernel.start_ns);
  const auto distance = static_cast<std::int32_t>(kernel.correlation - last_correlation_);
  put(zigzag(static_cast<std::uint64_t>(std::int64_t{distance})));
  last_start_ = kernel.start_ns;
  last_correlation_ = kernel.correlation;
  ++count_;
}

void KernelBatch::clear() {
  bytes_.clear();
  shapes_.clear();
  count_ = 0;
  last_start_ = 0;
  last_correlation_ = 0;
}

bool read_kernels(std::string_view batch, std::vector<Kernel>& kernels) {
  Reader in(batch);
  std::vector<Kernel> shapes;
  Kernel last{};
  while (!in.empty()) {
    std::uint32_t shape = 0;
    if (!in.get(shape) || shape > shapes.size()) return false;
    if (shape == shapes.size() && !get_shape(in, shapes.emplace_back())) return false;
    Kernel kernel = shapes[shape];
    std::uint64_t start = 0, duration = 0, correlation = 0;
    if (!in.get(start) || !in.get(duration) || !in.get(correlation)) return false;
    kernel.start_ns = last.start_ns + unzigzag(start);
    kernel.end_ns = kernel.start_ns + duration;
    kernel.correlation = last.correlation + static_cast<std::uint32_t>(unzigzag(correlation));
    kernels.push_back(last = kernel);
  }
  return true;
}

}  // namespace joulediff::spool
