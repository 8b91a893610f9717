#include "lab/pack.h"

#include <cstddef>
#include <cstring>
#include <joulediff/record.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_file.h"
#include "spool/crc32.h"
#include "spool/kernels.h"

namespace joulediff::lab {
namespace {

using spool::Packer;
using spool::Type;
using testing::ElementsAre;
using testing::HasSubstr;

// A spool in memory, as a recorder would write it.
class Spool {
 public:
  Spool() : bytes_(spool::kMagic, sizeof spool::kMagic) { bytes_.resize(16); }

  Spool& add(Type type, std::string_view payload) {
    std::string record;
    const auto put = [&record](std::uint32_t number) {
      record.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    put(static_cast<std::uint32_t>(payload.size()));
    put(static_cast<std::uint32_t>(type));
    record += payload;
    put(spool::crc32(record));
    bytes_ += record;
    return *this;
  }
  template <class T>
  Spool& add_packed(Type type, const T& packed) {
    return add(type, {reinterpret_cast<const char*>(&packed), sizeof packed});
  }
  Spool& fact(std::string_view topic, std::string_view json) {
    return add(Type::fact, Packer().put(topic).put(json).bytes());
  }
  Spool& step(std::uint32_t pass, std::uint32_t index, std::uint64_t begin, std::uint64_t end) {
    return add_packed(Type::step, spool::Step{pass, index, begin, end, 0, 0});
  }
  Spool& tensor(std::uint64_t id, std::uint64_t version = 0, std::uint32_t role = JD_COMPUTED,
                std::int64_t length = 1) {
    jd_tensor_info info{};
    info.id = id;
    info.storage = id;
    info.version = version;
    info.dims = 1;
    info.role = role;
    info.shape[0] = length;
    info.stride[0] = 1;
    info.fingerprint.count = 1;
    info.fingerprint.dtype = static_cast<std::uint8_t>(value::DType::float32);
    info.fingerprint.distinct = 1;
    return add(Type::tensor,
               {reinterpret_cast<const char*>(&info), offsetof(jd_tensor_info, sample)});
  }
  Spool& op(std::uint32_t index, std::string_view name, std::vector<std::uint64_t> inputs,
            std::vector<std::uint64_t> outputs, std::string_view json) {
    Packer packer;
    packer.put(index).put(name);
    for (const auto& ids : {inputs, outputs}) {
      packer.put(static_cast<std::uint32_t>(ids.size()));
      for (std::uint64_t id : ids) packer.put(id);
    }
    return add(Type::op, packer.put(json).bytes());
  }
  Spool& op_name(std::uint32_t step, std::uint32_t index, std::string_view name) {
    return add(Type::op_name, Packer().put(step).put(index).put(name).bytes());
  }
  Spool& kernel_name(std::uint32_t id, std::string_view name) {
    return add(Type::kernel_name, Packer().put(id).put(name).bytes());
  }
  Spool& kernel(std::uint32_t name, std::uint64_t start, std::uint32_t correlation,
                std::uint32_t pass) {
    spool::KernelBatch batch;
    batch.add({start, start + 10, name, correlation, pass, 7, {1, 2, 3}, {4, 5, 6}, 0, 0});
    return add(Type::kernel, batch.bytes());
  }
  Spool& replay(std::string_view signature, std::uint64_t begin, std::uint64_t count) {
    return add(Type::replay,
               Packer().put(begin).put(begin + 100).put(count).put(signature).bytes());
  }

  const std::string& bytes() const { return bytes_; }
  SpoolContents contents(std::uint32_t pid = 1) const { return *parse_spool(bytes_, pid); }

 private:
  std::string bytes_;
};

// Two operators: tensor 1 (an input) -> addmm -> 2 -> gelu -> 3.
Spool program() {
  Spool spool;
  spool
      .fact("manifest",
            R"({"framework":"torch 2.13.0","work_unit":"token","work_per_step":8,"gpus":"1"})")
      .fact("setting", R"({"key":"b","value":"2"})")
      .fact("setting", R"({"key":"a","value":"1"})")
      .fact("stack", R"({"id":9,"frames":[["model.py",12,"forward"],["main.py",3,"<module>"]]})")
      .fact("stack", R"({"id":10,"frames":[["model.py",13,"forward"],["main.py",3,"<module>"]]})")
      .tensor(1, 0, JD_INPUT)
      .tensor(2)
      .tensor(3)
      .op(0, "addmm", {1}, {2}, R"j({"signature":"addmm(f)","stack":9,"module":"mlp"})j")
      .op(1, "gelu", {2}, {3}, R"j({"signature":"gelu(f)","stack":10,"arguments":{"a":1}})j")
      .step(JD_VALUES, 1, 100, 200);
  return spool;
}

void order_pass(Spool& spool, const std::vector<std::string>& names) {
  spool.step(JD_ORDER, 2, 300, 400);
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    spool.op_name(2, i, names[i]);
    spool.add_packed(Type::op_time, spool::OpTime{2, i, 300 + i, 301 + i});
    spool.add_packed(Type::correlation, spool::Correlation{50 + i, 2, i, 0});
    spool.kernel_name(i, names[i] + "_kernel");
  }
  for (auto i = static_cast<std::uint32_t>(names.size()); i-- > 0;)
    spool.kernel(i, 310 + i * 20, 50 + i, JD_ORDER);
}

Recorded recorded(std::vector<SpoolContents> spools, std::uint32_t order = 0) {
  Recorded all;
  all.order = order;
  all.launched.pid = 1;
  all.launched.end = 1000;
  all.launched.series.push_back({run::Source::host_cpu, {1, 2}, {10, 20}, {}});
  all.spools = std::move(spools);
  return all;
}

const Diagnostic* find(const run::Run& run, std::string_view rule) {
  for (const Diagnostic& d : run.diagnostics)
    if (d.rule == rule) return &d;
  return nullptr;
}

TEST(Pack, BringsTheProgram) {
  Spool spool = program();
  order_pass(spool, {"addmm", "gelu"});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  EXPECT_EQ(run.manifest.framework, "torch 2.13.0");
  EXPECT_EQ(run.manifest.work, (run::Work{"token", 8}));
  EXPECT_EQ(run.manifest.facts["gpus"], "1");
  EXPECT_THAT(run.settings, ElementsAre(run::Setting{"a", "1"}, run::Setting{"b", "2"}));
  ASSERT_EQ(run.operators.size(), 2u);
  EXPECT_EQ(run.operators[0].name, "addmm");
  EXPECT_THAT(run.operators[1].inputs, run.operators[0].outputs);
  EXPECT_EQ(run.operators[1].arguments, R"({"a":1})");
  EXPECT_EQ(run.signatures[run.operators[1].signature.index()].text, "gelu(f)");
  // The two stacks share their outermost frame.
  EXPECT_EQ(run.stacks.size(), 3u);
  const auto path = run::call_path(run, run.operators[1].stack);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(run.frames[path[0].index()], (run::Frame{"model.py", 13, "forward"}));
  EXPECT_EQ(run.frames[path[1].index()], (run::Frame{"main.py", 3, "<module>"}));
  EXPECT_TRUE(run.diagnostics.empty());
}

TEST(Pack, ChargesOrderKernelsToTheOperatorsThatLaunchedThem) {
  Spool spool = program();
  order_pass(spool, {"addmm", "gelu"});
  spool.kernel(0, 330, 99, JD_ORDER);  // launched by nothing we know
  spool.kernel(1, 900, 0, JD_TRACE);
  spool.kernel(5, 900, 0, JD_TRACE);  // has no name
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  const run::KernelSeries& order = run.blocks[0].order_kernels;
  EXPECT_THAT(order.start, ElementsAre(310, 330, 330));
  EXPECT_EQ(order.op[0], run::OperatorId(0));
  EXPECT_EQ(order.op[1], run::OperatorId(1));
  EXPECT_FALSE(order.op[2].valid());
  EXPECT_THAT(order.step, ElementsAre(2, 2, 2));
  EXPECT_EQ(run.kernels[order.kernel[1].index()].name, "gelu_kernel");
  EXPECT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.blocks[0].trace_kernels.size(), 1u);
  EXPECT_EQ(run.blocks[0].operator_times.size(), 2u);
  EXPECT_EQ(find(run, "record.bad_kernel")->count, 1u);
}

TEST(Pack, TheTraceHasTheKernelsOfItsStepsAlone) {
  Spool spool = program();
  order_pass(spool, {"addmm", "gelu"});
  spool.step(JD_TRACE, 3, 500, 600);
  spool.step(JD_TRACE, 4, 600, 700);
  for (const std::uint32_t start : {250u, 510u, 690u, 710u}) spool.kernel(0, start, 90, JD_TRACE);
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_THAT(run.blocks[0].trace_kernels.start, ElementsAre(510, 690));
}

TEST(Pack, AlignsAnOrderPassThatDiffersByNames) {
  Spool spool = program();
  order_pass(spool, {"addmm", "dropout", "gelu"});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_THAT(run.blocks[0].operator_times.op,
              ElementsAre(run::OperatorId(0), run::OperatorId(2), run::OperatorId(1)));
  EXPECT_EQ(run.blocks[0].order_kernels.op[1], run::OperatorId(2));
  ASSERT_EQ(run.operators.size(), 3u);
  EXPECT_EQ(run.operators[2].name, "dropout");  // without values
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  ASSERT_TRUE(find(run, "record.order_differs"));
  EXPECT_EQ(find(run, "record.order_differs")->count, 1u);
}

// A step on other inputs makes other operators: they have kernels and a name, and no values.
TEST(Pack, OperatorsOfOtherInputsAreOfTheOrderPassAlone) {
  Spool spool = program();
  spool.add(Type::inputs, Packer().put(std::uint32_t{1}).put(std::string_view("f[8]")).bytes());
  spool.add(Type::inputs, Packer().put(std::uint32_t{2}).put(std::string_view("f[1]")).bytes());
  spool.add_packed(Type::step, spool::Step{JD_VALUES, 1, 100, 200, 1, 0});
  spool.kernel_name(0, "graph_kernel");
  for (const std::uint32_t step : {2u, 3u}) {
    const std::uint64_t begin = 300 + 100 * (step - 2);
    spool.add_packed(Type::step, spool::Step{JD_ORDER, step, begin, begin + 100, 2, 0});
    if (step == 2) spool.op_name(2, 0, "cuda_graph.replay");
    spool.add_packed(Type::op_time, spool::OpTime{step, 0, begin + 10, begin + 20});
    spool.add_packed(Type::correlation, spool::Correlation{step, step, 0, 0});
    spool.kernel(0, begin + 15, step, JD_ORDER);
  }
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  ASSERT_EQ(run.operators.size(), 3u);
  EXPECT_EQ(run.operators[2].name, "cuda_graph.replay");
  EXPECT_THAT(run.blocks[0].order_kernels.op, ElementsAre(run::OperatorId(2), run::OperatorId(2)));
  EXPECT_FALSE(find(run, "record.order_differs"));
  // A later block finds it again.
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()}, 1)));
  EXPECT_EQ(run.operators.size(), 3u);
  EXPECT_EQ(run.blocks[1].order_kernels.op[0], run::OperatorId(2));
}

TEST(Pack, InputsDevicesAndWaits) {
  Spool spool = program();
  spool.add(Type::inputs,
            Packer().put(std::uint32_t{1}).put(std::string_view("float32[8,4]")).bytes());
  spool.add(Type::device, Packer()
                              .put(std::uint32_t{0})
                              .put(std::string_view("GPU-a"))
                              .put(std::string_view("board"))
                              .bytes());
  order_pass(spool, {"addmm", "gelu"});
  spool.add_packed(Type::step, spool::Step{JD_TRACE, 5, 500, 600, 1, 0});
  spool.add_packed(Type::synchronisation, spool::Synchronisation{550, 560, 3, 7, JD_TRACE, 0});
  spool.add_packed(Type::synchronisation, spool::Synchronisation{520, 525, 99, 7, JD_TRACE, 0});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  ASSERT_EQ(run.inputs.size(), 1u);
  EXPECT_EQ(run.inputs[0].text, "float32[8,4]");
  EXPECT_EQ(run.blocks[0].steps.back().inputs, run::InputsId(0));
  EXPECT_FALSE(run.blocks[0].steps.front().inputs.valid());
  EXPECT_THAT(run.devices, ElementsAre(run::Device{"GPU-a", "board"}));
  EXPECT_EQ(run.blocks[0].order_kernels.device_of(0), run::DeviceId(0));
  EXPECT_THAT(run.blocks[0].synchronisations.kind,
              ElementsAre(run::SynchronisationKind::other, run::SynchronisationKind::stream));
  EXPECT_THAT(run.blocks[0].synchronisations.start, ElementsAre(520, 550));
}

// Ranks of one launch are blocks of one order; what the meters read is in the first alone.
TEST(Pack, RanksOfALaunchAreBlocksOfOneOrder) {
  Spool rank1;
  rank1.fact("process", R"({"pid":4,"rank":1})");
  order_pass(rank1, {"addmm", "gelu"});
  Spool rank0 = program();
  rank0.fact("process", R"({"pid":5,"rank":0})");
  order_pass(rank0, {"addmm", "gelu"});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({rank1.contents(4), rank0.contents(5)}, 3)));
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  ASSERT_EQ(run.blocks.size(), 2u);
  EXPECT_EQ(run.blocks[0].rank, 0u);
  EXPECT_EQ(run.blocks[0].pid, 5u);
  EXPECT_EQ(run.blocks[1].rank, 1u);
  EXPECT_EQ(run.blocks[1].order, 3u);
  EXPECT_EQ(run.blocks[0].series.size(), 1u);
  EXPECT_TRUE(run.blocks[1].series.empty());
  EXPECT_EQ(run.blocks[1].order_kernels.op[1], run::OperatorId(1));
}

// Which of two workers is ready first is chance: the values are those of the one that was made
// first.
TEST(Pack, WhoSaysWhatTheProgramIsDoesNotDependOnWhoIsFirst) {
  for (const bool first_is_early : {true, false}) {
    Spool first = program(), second = program();
    first.fact("process", R"({"pid":9,"identity":[1]})");
    second.fact("process", R"({"pid":4,"identity":[2]})")
        .fact("setting", R"({"key":"c","value":"3"})");
    order_pass(first, {"addmm", "gelu"});
    first.step(JD_TRACE, 9, first_is_early ? 1 : 1'000'000, 2'000'000);
    order_pass(second, {"addmm", "gelu"});
    second.step(JD_TRACE, 9, 1000, 2'000'000);
    run::Run run;
    ASSERT_TRUE(add_launch(run, recorded({second.contents(4), first.contents(9)})));
    ASSERT_EQ(run.blocks.size(), 2u);
    EXPECT_EQ(run.blocks[0].pid, 9u);
    EXPECT_EQ(run.blocks[1].rank, 1u);
    EXPECT_EQ(run.settings.size(), 2u);
    EXPECT_EQ(run.manifest.facts.at(kValuesOfFact), "0");
  }
}

// Another worker's values are not those of the first: which one's they are is kept.
TEST(Pack, AWorkerWithoutValuesLeavesThemToTheNext) {
  Spool first, second = program();
  first.fact("process", R"({"identity":[1]})");
  second.fact("process", R"({"identity":[2]})");
  order_pass(first, {"addmm", "gelu"});
  order_pass(second, {"addmm", "gelu"});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({first.contents(4), second.contents(9)})));
  EXPECT_EQ(run.blocks.size(), 2u);
  EXPECT_EQ(run.manifest.facts.at(kValuesOfFact), "1");
}

TEST(Pack, LaterBlocksTakeTheIdsOfTheFirst) {
  Spool first = program();
  order_pass(first, {"addmm", "gelu"});
  first.replay("gelu(f)", 2000, 5);
  Spool second;
  order_pass(second, {"addmm", "gelu"});
  second.replay("joulediff.static", 1000, 1)
      .replay("joulediff.idle", 1500, 1)
      .replay("gelu(f)", 2000, 5)
      .replay("joulediff.cold gelu(f)", 2500, 5)
      .replay("softmax(f)", 3000, 5);
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({first.contents()})));
  ASSERT_TRUE(add_launch(run, recorded({second.contents()}, 1)));
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
  ASSERT_EQ(run.blocks.size(), 2u);
  EXPECT_EQ(run.operators.size(), 2u);
  EXPECT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.blocks[0].order_kernels.op, run.blocks[1].order_kernels.op);
  EXPECT_EQ(run.blocks[0].order_kernels.kernel, run.blocks[1].order_kernels.kernel);
  const auto& replays = run.blocks[1].replays;
  ASSERT_EQ(replays.size(), 4u);
  EXPECT_EQ(replays[0].kind, run::ReplayKind::static_power);
  EXPECT_EQ(replays[1].kind, run::ReplayKind::idle);
  EXPECT_EQ(replays[2].signature, run.blocks[0].replays[0].signature);
  EXPECT_EQ(replays[2].kind, run::ReplayKind::op);
  EXPECT_EQ(replays[3].signature, replays[2].signature);
  EXPECT_EQ(replays[3].kind, run::ReplayKind::cold);
  EXPECT_TRUE(find(run, "record.unknown_replay"));
}

TEST(Pack, AValueThatWasThereBeforeIsNotMadeAnew) {
  Spool spool = program();
  spool.op(2, "detach", {3}, {3}, "{}").op(3, "view", {1}, {2}, "{}");
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_TRUE(run.operators[2].outputs.empty());
  EXPECT_TRUE(run.operators[3].outputs.empty());
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
}

TEST(Pack, TheSameGeometryUnderTwoIdsIsOneTensor) {
  Spool spool = program();
  spool.tensor(2).op(2, "relu", {2}, {}, "{}");
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_EQ(run.tensors.size(), 3u);
}

TEST(Pack, LeavesOutWhatCannotBe) {
  Spool spool = program();
  spool.tensor(77, 0, JD_COMPUTED, INT64_MAX).op(2, "relu", {77}, {}, "{}");
  spool.step(JD_TRACE, 5, 1, ~0ull).step(JD_TRACE, 6, 1ull << 62, (1ull << 62) + 1);
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_EQ(run.tensors.size(), 3u);
  EXPECT_EQ(run.operators.size(), 3u);
  EXPECT_TRUE(run.operators[2].inputs.empty());
  EXPECT_THAT(find(run, "record.impossible_value")->message, HasSubstr("too large"));
  EXPECT_FALSE(find(run, "record.unknown_tensor"));
  EXPECT_EQ(find(run, "record.bad_step")->count, 2u);
  EXPECT_TRUE(run::validate(run)) << run::validate(run).error().message;
}

// One mistaken call, of an operator that no step reaches, costs no memory and no recording.
TEST(Pack, LeavesOutCallsThatCannotBe) {
  constexpr std::uint32_t kFar = 4'000'000'000;
  Spool spool = program();
  order_pass(spool, {"addmm", "gelu"});
  spool.op_name(2, kFar, "x").add_packed(Type::op_time, spool::OpTime{2, kFar, 330, 331});
  spool.add_packed(Type::correlation, spool::Correlation{99, 2, kFar, 0});
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_EQ(run.blocks[0].operator_times.size(), 2u);
  EXPECT_EQ(find(run, "record.impossible_call")->count, 3u);
}

TEST(Pack, ARegionThatNamesNothingIsNamed) {
  run::Run run;
  Recorded nothing = recorded({Spool().contents()});
  nothing.region = "torch.nn:NoSuch";
  EXPECT_THAT(add_launch(run, nothing).error().message, HasSubstr("--region torch.nn:NoSuch"));
}

TEST(Pack, KeepsWhatLiesBeforeATear) {
  Spool spool = program();
  const std::size_t whole = spool.bytes().size();
  order_pass(spool, {"addmm", "gelu"});
  const auto torn = parse_spool(std::string_view(spool.bytes()).substr(0, whole + 5), 1);
  ASSERT_TRUE(torn);
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({*torn})));
  EXPECT_EQ(run.operators.size(), 2u);
  EXPECT_TRUE(find(run, "record.torn_spool"));
}

TEST(Pack, CountsRecordsThatHaveNotTheirForm) {
  Spool spool = program();
  spool.add(Type::tensor, "short").add(Type::op, "x").add(static_cast<Type>(77), "new");
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_EQ(find(run, "record.damaged_records")->count, 3u);
}

TEST(Pack, BadFactsAreCountedNotThrown) {
  Spool spool = program();
  spool.fact("manifest", "{").fact("setting", "[1]").fact("stack", R"({"id":"x","frames":3})");
  spool.fact("stack", R"({"id":4,"frames":[[1,2,3],["a",-1,"b"],"c"]})");
  spool.fact("diagnostic", R"({"severity":"warning","rule":"r","message":"m"})");
  spool.fact("diagnostic", R"({"severity":"warning","rule":"r","message":"m"})");
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({spool.contents()})));
  EXPECT_TRUE(find(run, "record.bad_fact"));
  EXPECT_EQ(find(run, "r")->count, 2u);
  EXPECT_EQ(find(run, "r")->severity, Severity::warning);
}

TEST(Pack, TakesTheProcessWithOperatorsAndCountsTheOthers) {
  Spool worker;
  worker.step(JD_VALUES, 0, 1, 2);
  run::Run run;
  ASSERT_TRUE(add_launch(run, recorded({worker.contents(4), program().contents(5)})));
  EXPECT_EQ(run.operators.size(), 2u);
  EXPECT_EQ(find(run, "record.other_processes")->count, 1u);
}

TEST(Pack, SaysWhyThereIsNothing) {
  run::Run run;
  const Status none = add_launch(run, recorded({}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::environment);
  const Status no_steps = add_launch(run, recorded({Spool().contents()}));
  ASSERT_FALSE(no_steps);
  EXPECT_EQ(no_steps.error().code, ExitCode::bad_input);
  EXPECT_THAT(no_steps.error().message, HasSubstr("--region"));
  Recorded crashed = recorded({Spool().contents()});
  crashed.launched.exit_status = 139;
  EXPECT_THAT(add_launch(run, crashed).error().message, HasSubstr("139"));
  EXPECT_TRUE(run.blocks.empty());
  EXPECT_TRUE(run.operators.empty());
}

TEST(Pack, ACrashKeepsWhatWasRecorded) {
  Recorded crashed = recorded({program().contents()});
  crashed.launched.exit_status = 134;
  run::Run run;
  ASSERT_TRUE(add_launch(run, crashed));
  EXPECT_EQ(run.blocks[0].exit_status, 134);
  EXPECT_THAT(find(run, "record.program_failed")->message, HasSubstr("after step "));
}

TEST(Pack, AnEndThatWeMadeIsNoFailure) {
  Recorded stopped = recorded({program().contents()});
  stopped.launched.exit_status = 130;
  stopped.launched.stopped = true;
  stopped.launched.left_behind = {"7 (worker)", "8 (worker)"};
  run::Run run;
  ASSERT_TRUE(add_launch(run, stopped));
  EXPECT_EQ(run.blocks[0].exit_status, 0);
  EXPECT_FALSE(find(run, "record.program_failed"));
  EXPECT_EQ(find(run, "record.stopped")->severity, Severity::note);
  EXPECT_THAT(find(run, "record.left_behind")->message, HasSubstr("7 (worker), 8 (worker)"));
  EXPECT_EQ(find(run, "record.left_behind")->count, 2u);
}

TEST(Pack, ALaunchWithoutItsEndSaysHowFarItCame) {
  Recorded cut = recorded({program().contents()}, 2);
  cut.launched.cut = true;
  cut.launched.exit_status = kUnknownStatus;
  run::Run run;
  ASSERT_TRUE(add_launch(run, cut));
  EXPECT_EQ(run.blocks[0].exit_status, kUnknownStatus);
  EXPECT_FALSE(find(run, "record.program_failed"));
  EXPECT_THAT(find(run, "record.cut")->message, HasSubstr("its process 3, after step "));
}

}  // namespace
}  // namespace joulediff::lab
