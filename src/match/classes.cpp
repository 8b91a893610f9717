// Within a run two values are equal if their elements are, bit by bit: any tolerance would merge a
// weight with itself one update later, and with it the whole graph. Hashes tell nothing of order:
// where two values were sampled under a common shape, some permutation of its axes must make the
// samples equal, or one is the other shuffled (rolled, flipped, taken by an index). A cast is an
// exception: a node that turns x into x rounded to a coarser format makes no new value. Slices are
// values of their own. Constants, single elements and tensors of one or two distinct values (masks,
// zeros) belong to no class: too many of them are equal by chance.
#include "match/classes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <boost/unordered/unordered_flat_map.hpp>

#include "match/anchors.h"
#include "match/geometry.h"

namespace joulediff::match {
namespace {

using value::DType;
using value::DTypeClass;
using value::Fingerprint;

// Beyond this a float is a mask, not a number: the least of float32 is a common one.
constexpr float kMask = 1e30F;

// Real numbers that differ by rounding alone are one number: the means of a softmax's rows.
constexpr double kLeastSpread = 1e-5;

bool recognisable(const Fingerprint& f) {
  if (f.count <= 1 || f.distinct < 3 || f.dtype == DType::other) return false;
  return value::class_of(f.dtype) != DTypeClass::real ||
         f.max - f.min > kLeastSpread * std::max(std::abs(f.max), std::abs(f.min));
}

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) {
    for (std::uint32_t i = 0; i < size; ++i) parent_[i] = i;
  }
  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

const Fingerprint& fingerprint_of(const run::Run& run, const Value& value) {
  return run.tensors[value.tensors.front().index()].fingerprint;
}

// Whether `coarse` is `fine` rounded to its own format.
bool rounded(const Fingerprint& fine, const Fingerprint& coarse) {
  if (fine.count != coarse.count || fine.dtype == coarse.dtype) return false;
  if (value::class_of(fine.dtype) != DTypeClass::real) return false;
  if (coarse.dtype == DType::bfloat16) return fine.bf16 == coarse.bf16;
  if (coarse.dtype == DType::float16) return fine.fp16 == coarse.fp16;
  return false;
}

void join_casts(const run::Run& run, const Graph& graph, UnionFind& sets) {
  std::vector<bool> taken(graph.values.size(), false);  // the class has its finer values already
  for (const std::uint32_t n : graph.order) {
    const Node& node = graph.nodes[n];
    std::uint32_t source = kNone;
    bool single = node.writes.size() == 1;
    for (const std::uint32_t v : node.reads) {
      if (graph.values[v].constant) continue;
      single = single && source == kNone;
      source = v;
    }
    if (!single || source == kNone) continue;
    const std::uint32_t target = node.writes.front();
    const Fingerprint& fine = fingerprint_of(run, graph.values[source]);
    const Fingerprint& coarse = fingerprint_of(run, graph.values[target]);
    if (!recognisable(fine) || !recognisable(coarse) || !rounded(fine, coarse)) continue;
    const std::uint32_t set = sets.find(target);
    if (taken[set] || sets.find(source) == set) continue;
    sets.join(source, target);
    taken[sets.find(source)] = true;
  }
}

// Samples along each axis, by shape: programs have many tensors of few shapes.
using Grids = std::map<std::vector<std::int64_t>, std::vector<std::uint32_t>>;

const std::vector<std::uint32_t>& grid_of(const std::vector<std::int64_t>& shape, Grids& grids) {
  const auto [it, fresh] = grids.try_emplace(shape);
  if (fresh) {
    for (const auto& axis : value::sample_grid(shape))
      it->second.push_back(static_cast<std::uint32_t>(axis.size()));
  }
  return it->second;
}

Geometry geometry_of(const run::Run& run, run::TensorId id, std::vector<std::int64_t> shape,
                     Grids& grids) {
  const run::Tensor& tensor = run.tensors[id.index()];
  Geometry g{id, std::move(shape), {}, {}, tensor.sample, {}, 0};
  g.sorted = g.shape;
  std::ranges::sort(g.sorted);
  g.grid = grid_of(g.shape, grids);
  double squares = 0;
  for (std::size_t i = 0; i < tensor.sample.size(); ++i) {
    const float x = tensor.sample[i];
    if (std::abs(x) < kMask) {
      squares += static_cast<double>(x) * x;
      continue;
    }
    if (!g.cleared) {
      g.special.resize(tensor.sample.size());
      g.cleared = std::make_unique<std::vector<float>>(tensor.sample);
      g.sample = *g.cleared;
    }
    g.special[i] = std::isnan(x) ? 3 : x > 0 ? 1 : 2;
    (*g.cleared)[i] = 0;
  }
  g.norm = std::sqrt(squares);
  return g;
}

void add_geometries(const run::Run& run, const Value& value, Grids& grids,
                    std::vector<Geometry>& geometries) {
  for (const run::TensorId id : value.tensors) {
    const run::Tensor& tensor = run.tensors[id.index()];
    if (tensor.sample.empty()) continue;
    std::vector<std::int64_t> shape = squeezed_shape(tensor);
    if (std::ranges::find(geometries, shape, &Geometry::shape) != geometries.end()) continue;
    Geometry g = geometry_of(run, id, std::move(shape), grids);
    std::size_t samples = 1;
    for (const std::uint32_t k : g.grid) samples *= k;
    if (samples == tensor.sample.size()) geometries.push_back(std::move(g));
  }
}

// Values with the same elements, told apart by their order.
class Orders {
 public:
  Orders(const run::Run& run, const Graph& graph, Grids& grids)
      : run_(run), graph_(graph), grids_(grids) {}

  bool same(std::uint32_t v, std::uint32_t w) {
    bool common = false;
    for (const Geometry& a : geometries(v)) {
      for (const Geometry& b : geometries(w)) {
        if (a.sorted != b.sorted) continue;
        common = true;
        if (fit(a, b, 0)) return true;
      }
    }
    return !common;
  }

 private:
  const std::vector<Geometry>& geometries(std::uint32_t v) {
    const auto [it, fresh] = of_value_.try_emplace(v);
    if (fresh) add_geometries(run_, graph_.values[v], grids_, it->second);
    return it->second;
  }

  const run::Run& run_;
  const Graph& graph_;
  Grids& grids_;
  std::map<std::uint32_t, std::vector<Geometry>> of_value_;
};

}  // namespace

Classes equal_classes(const run::Run& run, const Graph& graph) {
  using Key = std::tuple<value::Lanes, std::uint64_t, DTypeClass, std::uint64_t, std::uint64_t,
                         std::uint64_t>;
  const std::size_t size = graph.values.size();
  UnionFind sets(size);
  boost::unordered_flat_map<Key, Few> seen;  // a value of each order
  seen.reserve(size);
  Grids grids;
  Orders orders(run, graph, grids);
  std::vector<bool> eligible(size, false);
  for (std::uint32_t v = 0; v < size; ++v) {
    const Fingerprint& f = fingerprint_of(run, graph.values[v]);
    if (graph.values[v].constant || !recognisable(f)) continue;
    eligible[v] = true;
    Few& alike = seen[{f.own, f.count, value::class_of(f.dtype), f.nan, f.positive_infinity,
                       f.negative_infinity}];
    const auto same =
        std::ranges::find_if(alike, [&](std::uint32_t w) { return orders.same(v, w); });
    if (same != alike.end())
      sets.join(*same, v);
    else
      alike.push_back(v);
  }
  join_casts(run, graph, sets);

  Classes result;
  result.of_value.assign(size, kNone);
  std::vector<std::uint32_t> of_set(size, kNone);
  for (std::uint32_t v = 0; v < size; ++v) {
    if (!eligible[v]) continue;
    std::uint32_t& c = of_set[sets.find(v)];
    if (c == kNone) {
      c = static_cast<std::uint32_t>(result.classes.size());
      result.classes.emplace_back();
      result.classes.back().depth = std::numeric_limits<double>::infinity();
    }
    result.of_value[v] = c;
    EqualClass& equal = result.classes[c];
    equal.values.push_back(v);
    double depth = 0;
    for (const std::uint32_t n : graph.values[v].writers) {
      depth = std::max(depth, (graph.nodes[n].depth + 1.0) / (graph.depth + 1.0));
    }
    if (depth < equal.depth) {
      equal.depth = depth;
      equal.tensor = graph.values[v].tensors.front();
    }
    add_geometries(run, graph.values[v], grids, equal.geometries);
  }
  return result;
}

}  // namespace joulediff::match
