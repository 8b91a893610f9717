// The values pass of an engine: what each operator reads and writes, told apart by where it lies.
//
// An engine has no storages or versions, only memory that it writes again and again. A value is
// known by its address, geometry and the last write of the step that touched any of it; memory that
// overlaps, in whatever chain, is one storage, and its version the number of that write. Which
// writes a read is made of (a cache: its old rows and the new one) the reader of the run finds from
// the geometries. A value that changed although no operator wrote it is told, and becomes an input.
// Storages are known when the step has ended, so all is reported then.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "record/observe.h"

namespace joulediff::record {

// name(shape:stride:dtype:device, ...; arguments): equal for calls that do the same work.
std::string signature_of(const jd_op& op);

// False: it has no elements, or a shape that cannot be.
bool usable(const jd_value& value);

struct Bytes {
  std::uintptr_t begin, end;
};
Bytes bytes_of(const jd_value& value);  // from its first element's to its last's

class Values {
 public:
  void before(const jd_op& op);  // it is about to run
  void after(const jd_op& op);   // it has run
  void report();

 private:
  struct Value {
    jd_tensor_info info;
    std::vector<float> sample;
    Bytes bytes;
  };
  struct Operator {
    std::string name, json;
    std::vector<std::uint64_t> inputs, outputs;
  };
  struct Write {
    Bytes bytes;
    std::uint64_t version;
  };
  using Key = std::tuple<std::uintptr_t, std::uint64_t, std::uint32_t, std::vector<std::int64_t>,
                         std::vector<std::int64_t>>;

  std::uint64_t read(const jd_value& value);
  std::uint64_t add(const jd_value& value, std::uint64_t version, std::uint32_t role);
  std::uint64_t last_write(const Bytes& bytes) const;
  std::string json_of(const jd_op& op);
  std::uint64_t stack_of(const jd_place* place);
  void number_storages();

  std::vector<Value> values_;  // id: index + 1
  std::map<Key, std::uint64_t> known_;
  std::vector<Write> writes_;
  std::vector<Operator> operators_;
  std::map<std::string, std::uint64_t> stacks_;
  std::uint64_t version_ = 0;
  std::uint64_t unseen_ = 0;      // writes of no operator
  std::uint64_t impossible_ = 0;  // values that no memory holds
};

}  // namespace joulediff::record
