// The grammar is asked three times: of each measurement alone; of two of one side, with all that
// the boundary makes different forgotten; and of the two sides at one boundary, as `check` does.
// Three rules (docs/boundaries.md) are asked here only, for they need one job at two boundaries.
#include "rules/boundaries.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "rules/grammar_rules.h"

namespace joulediff::rules {
namespace {

// As they are listed. `from` and `to`: what they reach over; one lies inside another if it ends
// where that begins. The processors of a host are no part of a board.
struct Place {
  std::string_view name;
  int from, to;
};
constexpr std::array kPlaces{Place{"rail", 0, 0},    Place{"board", 1, 1},   Place{"host", 1, 1},
                             Place{"node-dc", 2, 2}, Place{"node", 2, 3},    Place{"node-ac", 3, 3},
                             Place{"rack", 4, 4},    Place{"facility", 5, 5}};

const Place* find(std::string_view boundary) {
  const auto found = std::ranges::find(kPlaces, boundary, &Place::name);
  return found == kPlaces.end() ? nullptr : &*found;
}

using Side = std::span<const Point>;

// What is another at another boundary, whatever the job.
Point without_boundary(Point p) {
  p.boundary = {};
  p.meter = {};
  p.energy = {};
  p.repeats = {};
  p.sampling = {};
  p.clock = {};
  p.facility = {};
  p.claim.clear();
  return p;
}

Objected nested_energy(const Point& inner, const Point& outer) {
  const auto x = per_unit(inner, margin_of(inner).with_systematic());
  const auto y = per_unit(outer, margin_of(outer).with_systematic());
  if (!x || !y || y->value >= x->value) return {};
  const bool known = x->bounded() && y->bounded();
  if (known && y->high >= x->low) return {};
  return object(
      known ? Severity::error : Severity::warning,
      fmt::format(
          "the {} needs {} a {}, the {} inside it {}{}", outer.boundary.kind,
          format(Joules(y->value)), said(inner.work.unit), inner.boundary.kind,
          format(Joules(x->value)),
          known ? ", beyond what both may be off by" : "; how far both may be off is not known"),
      known ? "one of the two is wrong, or they are not of one job" : "state meter.uncertainty");
}

Objected nested_components(const Point& inner, const Point& outer) {
  if (inner.boundary.includes.empty() || outer.boundary.includes.empty()) return {};
  std::vector<std::string> lacking;
  for (const std::string& one : inner.boundary.includes)
    if (std::ranges::find(outer.boundary.includes, one) == outer.boundary.includes.end())
      lacking.push_back(one);
  if (lacking.empty()) return {};
  return object(Severity::error,
                fmt::format("the {} leaves out {}, which the {} inside it holds",
                            outer.boundary.kind, said(lacking), inner.boundary.kind),
                "state all that each boundary holds");
}

Objected nested_devices(const Point& inner, const Point& outer) {
  Differences d;
  d.of("device", inner.hardware.device, outer.hardware.device)
      .of("number of devices", inner.hardware.devices, outer.hardware.devices);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("they are not of the same devices: {}", d.text()),
                "measure all devices of the job at both boundaries");
}

// Between the two sides: a saving is no saving of another site.
Objected one_site(const Point& a, const Point& b) {
  if (!scaled_by_pue(a) || !scaled_by_pue(b)) return {};
  Differences d;
  d.of("PUE", a.facility.pue, b.facility.pue)
      .of("of the energy of the", a.facility.energy_boundary, b.facility.energy_boundary)
      .of("site", a.facility.pue_site, b.facility.pue_site);
  if (!d.any()) return {};
  return object(Severity::error, fmt::format("the two sides are scaled differently: {}", d.text()),
                "put both into one site");
}

constexpr std::array kNested{Rule{"BO7", "energy of boundaries", nullptr, nested_energy},
                             Rule{"BO8", "components of boundaries", nullptr, nested_components},
                             Rule{"BO9", "devices of boundaries", nullptr, nested_devices}};

class Asked {
 public:
  void add(const std::string& at, const Rule& rule, Whom whom, Objected objection) {
    if (!objection) return;
    objection->rule = rule.id;
    objection->whom = whom;
    const auto same = std::ranges::find_if(list_, [&](const BoundaryObjection& one) {
      return one.what.rule == objection->rule && one.what.whom == whom &&
             one.what.message == objection->message;
    });
    if (same == list_.end())
      list_.push_back({at, std::move(*objection)});
    else if (same->at != at)
      same->at += ", " + at;
  }

  void of_each(Side side, Whom whom) {
    for (const Point& p : side)
      for (const Rule& rule : grammar())
        if (rule.one != nullptr) add(p.boundary.kind, rule, whom, rule.one(p));
  }

  // Of each, the first inside it (or before it) that a rule objects to: one other job among many
  // is said once.
  void of_one_job(Side side, Whom whom) {
    for (std::size_t j = 1; j < side.size(); ++j) {
      const Point outer = without_boundary(side[j]);
      for (const Rule& rule : grammar())
        for (std::size_t i = 0; i < j && rule.pair != nullptr; ++i)
          if (Objected objection = rule.pair(without_boundary(side[i]), outer)) {
            add(both(side[i], side[j]), rule, whom, std::move(objection));
            break;
          }
      for (const Rule& rule : kNested)
        for (std::size_t i = 0; i < j; ++i) {
          if (!lies_inside(side[i].boundary.kind, side[j].boundary.kind)) continue;
          if (Objected objection = rule.pair(side[i], side[j])) {
            add(both(side[i], side[j]), rule, whom, std::move(objection));
            break;
          }
        }
    }
  }

  void of_two(const Point& a, const Point& b) {
    for (const Rule& rule : grammar())
      if (rule.pair != nullptr) add(a.boundary.kind, rule, Whom::both, rule.pair(a, b));
    add(a.boundary.kind, Rule{"F1", "PUE"}, Whom::both, one_site(a, b));
  }

  Result<std::vector<BoundaryObjection>> despite(std::span<const std::string> rules) && {
    for (const std::string& rule : rules) {
      bool found = false;
      for (BoundaryObjection& one : list_) {
        if (one.what.rule != rule || one.what.severity != Severity::error) continue;
        one.what.severity = Severity::warning;
        found = true;
      }
      if (!found)
        return fail(ExitCode::usage,
                    fmt::format("--despite {}: no such rule refuses this", printable(rule)));
    }
    return std::move(list_);
  }

 private:
  static std::string both(const Point& inner, const Point& outer) {
    return fmt::format("{} and {}", inner.boundary.kind, outer.boundary.kind);
  }

  std::vector<BoundaryObjection> list_;
};

// The innermost first; a boundary that is not known, or is there twice, is bad input.
Result<std::vector<std::size_t>> in_order(Side side) {
  std::map<const Place*, std::size_t> found;
  for (std::size_t i = 0; i < side.size(); ++i) {
    const std::string& kind = side[i].boundary.kind;
    const Place* place = find(kind);
    if (place == nullptr)
      return fail(ExitCode::bad_input,
                  kind.empty() ? fmt::format("{}: its boundary is not known; state boundary.kind "
                                             "(docs/points.md)",
                                             printable(side[i].label))
                               : fmt::format("{}: \"{}\" is no boundary; docs/points.md lists them",
                                             printable(side[i].label), printable(kind)));
    const auto [other, is_new] = found.emplace(place, i);
    if (!is_new)
      return fail(ExitCode::usage, fmt::format("{} and {} are both measured at the {}; give one of "
                                               "them",
                                               printable(side[other->second].label),
                                               printable(side[i].label), kind));
  }
  std::vector<std::size_t> order;
  order.reserve(found.size());
  for (const auto& [place, index] : found) order.push_back(index);
  return order;
}

std::vector<Point> sorted(Side side, const std::vector<std::size_t>& order) {
  std::vector<Point> result;
  result.reserve(order.size());
  for (const std::size_t i : order) result.push_back(side[i]);
  return result;
}

void add_seen(std::vector<BoundaryRow>& rows, Side side, const std::vector<std::size_t>& order,
              std::optional<Seen> BoundaryRow::* which) {
  for (const std::size_t i : order) {
    BoundaryRow& row = *std::ranges::find(rows, side[i].boundary.kind, &BoundaryRow::boundary);
    row.*which = Seen{i, per_unit(side[i], margin_of(side[i]).with_systematic()), {}, {}};
  }
}

void add_steps(std::vector<BoundaryRow>& rows, std::optional<Seen> BoundaryRow::* which) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    for (std::size_t i = j; i-- > 0;) {
      std::optional<Seen>&outer = rows[j].*which, &inner = rows[i].*which;
      if (!outer || !inner || !outer->per_unit || !inner->per_unit) continue;
      if (!lies_inside(rows[i].boundary, rows[j].boundary)) continue;
      outer->added = *outer->per_unit - *inner->per_unit;
      outer->over = rows[i].boundary;
      break;
    }
}

void add_saving(BoundaryRow& row, const Point& a, const Point& b) {
  const Margin x = margin_of(a), y = margin_of(b);
  const bool alike = measured_alike(a, b);
  const auto ea = per_unit(a, alike ? x.random : x.with_systematic());
  const auto eb = per_unit(b, alike ? y.random : y.with_systematic());
  const double larger = ea && eb ? std::max(ea->value, eb->value) : 0;
  if (!(larger > 0)) return;
  row.saved = *ea - *eb;
  row.share =
      Interval{row.saved->value / larger, row.saved->low / larger, row.saved->high / larger};
  if (!alike) return;
  // What cancels in the share does not in the joules.
  const Fact& common = x.systematic;
  row.saved = common && row.saved->bounded()
                  ? *row.saved - Interval::around(0, *common * std::abs(row.saved->value))
                  : Interval::unbounded(row.saved->value);
}

void add_kept(Boundaries& table) {
  const BoundaryRow* reference = nullptr;
  for (const BoundaryRow& row : table.rows)
    if (row.saved && (reference == nullptr || row.boundary == "board")) reference = &row;
  if (reference == nullptr) return;
  table.reference = reference->boundary;
  const Interval& all = *reference->saved;
  if (!all.bounded() || (all.low <= 0 && all.high >= 0)) return;  // perhaps nothing is to be kept
  for (BoundaryRow& row : table.rows) {
    if (!row.saved || !lies_inside(table.reference, row.boundary)) continue;
    row.kept = *row.saved / all;
  }
}

}  // namespace

bool lies_inside(std::string_view inner, std::string_view outer) {
  const Place *x = find(inner), *y = find(outer);
  if (x == nullptr || y == nullptr || (inner == "rail" && outer == "host")) return false;
  return x->to < y->from;
}

Result<Boundaries> boundaries(Side a, Side b, std::span<const std::string> despite) {
  JD_ASSIGN(const auto order_a, in_order(a));
  JD_ASSIGN(const auto order_b, in_order(b));
  const std::vector<Point> of_a = sorted(a, order_a), of_b = sorted(b, order_b);

  Boundaries table;
  for (const Place& place : kPlaces) {
    const auto here = [&](const Point& p) { return p.boundary.kind == place.name; };
    if (std::ranges::any_of(a, here) || std::ranges::any_of(b, here)) {
      table.rows.emplace_back();
      table.rows.back().boundary = place.name;
    }
  }
  add_seen(table.rows, a, order_a, &BoundaryRow::a);
  add_seen(table.rows, b, order_b, &BoundaryRow::b);

  Asked asked;
  asked.of_each(of_a, Whom::a);
  asked.of_each(of_b, Whom::b);
  asked.of_one_job(of_a, Whom::a);
  asked.of_one_job(of_b, Whom::b);
  bool common = b.empty();
  for (const BoundaryRow& row : table.rows) {
    if (!row.a || !row.b) continue;
    asked.of_two(a[row.a->point], b[row.b->point]);
    common = true;
  }
  if (!common)
    asked.add("all", Rule{"BO1", "boundary"}, Whom::both,
              object(Severity::error, "no boundary was measured on both sides",
                     "measure both at one boundary"));
  JD_ASSIGN(table.objections, std::move(asked).despite(despite));
  table.refused = std::ranges::any_of(table.objections, [](const BoundaryObjection& one) {
    return one.what.severity == Severity::error;
  });
  if (table.refused) return table;
  add_steps(table.rows, &BoundaryRow::a);
  add_steps(table.rows, &BoundaryRow::b);
  for (BoundaryRow& row : table.rows)
    if (row.a && row.b) add_saving(row, a[row.a->point], b[row.b->point]);
  add_kept(table);
  return table;
}

}  // namespace joulediff::rules
