// The tables of a run file: their rows, in the order in which they lie in the file.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "run/fields.h"
#include "run/series.h"

namespace joulediff::run {

// Rows that are not records of the model.
struct Fact {
  std::string key;
  std::string value;
};
template <class T>
struct InBlock {
  std::uint32_t block = 0;
  T record;
};

template <class V, Is<Fact> X>
void fields(V& visit, X& x) {
  visit("key", x.key);
  visit("value", x.value);
}
template <class V, Is<InBlock<Step>> X>
void fields(V& visit, X& x) {
  visit("block", x.block);
  fields(visit, x.record);
}
template <class V, Is<InBlock<Replay>> X>
void fields(V& visit, X& x) {
  visit("block", x.block);
  fields(visit, x.record);
}
template <class V, Is<SeriesRow> X>
void fields(V& visit, X& x) {
  visit("block", x.block);
  visit("kind", x.kind);
  visit("source", x.source);
  visit("uncertain", x.uncertain);
  visit("records", x.records);
  since(2, visit, "channel", x.channel);
}
template <class V, Is<Chunk> X>
void fields(V& visit, X& x) {
  visit("series", x.series);
  visit("column", x.column);
  visit("records", x.records);
  visit("data", x.data);
}
template <class V, Is<SampleChunk> X>
void fields(V& visit, X& x) {
  visit("records", x.records);
  visit("data", x.data);
}

// All rows of a file, in the order of its tables; later formats add theirs at the end.
using Tables =
    std::tuple<std::vector<Manifest>, std::vector<Fact>, std::vector<Setting>, std::vector<Frame>,
               std::vector<StackNode>, std::vector<Signature>, std::vector<Tensor>,
               std::vector<Operator>, std::vector<Kernel>, std::vector<Block>,
               std::vector<InBlock<Step>>, std::vector<InBlock<Replay>>, std::vector<Diagnostic>,
               std::vector<SeriesRow>, std::vector<Chunk>, std::vector<SampleChunk>,
               std::vector<Device>, std::vector<Inputs>>;
inline constexpr std::array<const char*, std::tuple_size_v<Tables>> kTables{
    "manifest",   "fact",     "setting", "frame",  "stack",  "signature",
    "tensor",     "operator", "kernel",  "block",  "step",   "replay",
    "diagnostic", "series",   "chunk",   "sample", "device", "inputs"};
// How many of them a format has.
constexpr std::size_t table_count(std::uint32_t version) {
  return version < 2 ? kTables.size() - 2 : kTables.size();
}

template <class T>
std::vector<T>& rows(Tables& tables) {
  return std::get<std::vector<T>>(tables);
}

// visit(name of the table, its rows), in order.
template <class Visit, std::size_t... I>
void each_table(Tables& tables, Visit visit, std::index_sequence<I...>) {
  (visit(kTables[I], std::get<I>(tables)), ...);
}
template <class Visit>
void each_table(Tables& tables, Visit visit) {
  each_table(tables, visit, std::make_index_sequence<std::tuple_size_v<Tables>>());
}

Tables tables_of(const Run& run);

// Puts the rows together; what they refer to is checked only as far as that needs.
Result<Run> run_of(Tables&& tables, std::uint32_t version);

}  // namespace joulediff::run
