#include <random>

#include <gtest/gtest.h>

#include "run/run_file.h"

namespace joulediff::run {
namespace {

// A GPT-2 step and a minute of its trace.
TEST(RunSize, ARealisticRunIsSmall) {
  std::mt19937_64 random(7);
  run::Run run;
  run.manifest.framework = "torch 2.11.0";
  for (std::size_t i = 0; i < 800; ++i) {
    const std::string layer = std::to_string(i / 66);
    run.frames.push_back({"/usr/lib/python3/dist-packages/transformers/models/gpt2/model.py",
                          static_cast<std::uint32_t>(i), "forward"});
    run.stacks.push_back({i > 0 ? StackId((i - 1) / 4) : StackId(), FrameId(i)});
    run.signatures.push_back(
        {"aten.addmm.default(float32[768],float32[1024,768]) " + std::to_string(i)});
    Operator op;
    op.name = "aten.addmm.default";
    op.stack = StackId(i);
    op.signature = SignatureId(i);
    op.module = "transformer.h." + layer + ".mlp.c_fc";
    op.arguments = R"({"beta": 1, "alpha": 1})";
    op.outputs = {TensorId(i)};
    op.inputs = {TensorId(800 + i % 700)};
    if (i > 0) op.inputs.emplace_back(i - 1);
    run.operators.push_back(op);
    run.kernels.push_back({"ampere_sgemm_128x64_tn_" + std::to_string(i),
                           {8, 12, 1},
                           {128, 1, 1},
                           KernelKind::kernel});
  }
  const auto real = [&] { return static_cast<float>(static_cast<double>(random()) * 1e-19); };
  for (std::size_t i = 0; i < 1500; ++i) {
    Tensor t;
    t.storage = i;
    t.shape = {1024, 768};
    t.stride = {768, 1};
    value::Fingerprint& f = t.fingerprint;
    f.count = 786432;
    for (double* moment : {&f.mean, &f.mean_abs, &f.rms, &f.l4, &f.m3, &f.min, &f.max}) {
      *moment = real();
    }
    for (value::Lanes* lanes : {&f.own, &f.bf16, &f.fp16}) {
      *lanes = {static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())};
    }
    if (i < 300) {
      std::size_t size = 1;
      for (const auto& axis : value::sample_grid(t.shape)) size *= axis.size();
      while (t.sample.size() < size) t.sample.push_back(real());
    }
    run.tensors.push_back(t);
  }
  Block& block = run.blocks.emplace_back();
  block.end = 100'000'000'000;
  Nanoseconds now = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {
    const std::size_t kernel = i % 800;
    now += 1000 + static_cast<Nanoseconds>(random() % 200);
    const Nanoseconds duration =
        static_cast<Nanoseconds>(5000 + kernel * 100 + 32 * (random() % 16));
    block.trace_kernels.kernel.emplace_back(kernel);
    block.trace_kernels.start.push_back(now);
    block.trace_kernels.duration.push_back(duration);
    block.trace_kernels.stream.push_back(7);
    block.trace_kernels.op.emplace_back();
    block.trace_kernels.step.push_back(0);
    now += duration;
  }
  Series& series = block.series.emplace_back();
  std::int64_t energy = 1'000'000'000;
  for (std::size_t i = 0; i < 10'000; ++i) {
    series.time.push_back(static_cast<Nanoseconds>(i * 10'000'000 + random() % 100'000));
    series.value.push_back(energy += static_cast<std::int64_t>(3000 + random() % 500));
    series.uncertainty.push_back(static_cast<Nanoseconds>(50'000 + random() % 10'000));
  }
  const auto bytes = write_run_bytes(run);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_LT(bytes->size(), 2'000'000u);
  RecordProperty("bytes", static_cast<int>(bytes->size()));
  const auto again = read_run_bytes(*bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->blocks[0].trace_kernels.start, block.trace_kernels.start);
  EXPECT_EQ(again->blocks[0].trace_kernels.duration, block.trace_kernels.duration);
  EXPECT_EQ(again->blocks[0].series[0].value, series.value);
  EXPECT_EQ(again->tensors[299].sample, run.tensors[299].sample);
}

}  // namespace
}  // namespace joulediff::run
