#include "record/values.h"

#include <array>
#include <numeric>

#include <gmock/gmock.h>

#include "record/observed.h"
#include "record/recorded.h"
#include "value/fingerprint.h"

namespace joulediff::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// `body` as the step of the values pass.
template <class Body>
Recorded values_of(Body body) {
  return recorded(
      [&] {
        jd_step_begin(nullptr);
        jd_step_end();
        JD_REQUIRE(jd_step_begin(nullptr) == JD_VALUES);
        body();
        jd_step_end();
      },
      {{"JOULEDIFF_PASSES", "values"}});
}

TEST(Values, HaveTheFingerprintsOfTheirElements) {
  const std::array<float, 4> x{1, -2, 3, 0.5};
  const auto r = values_of([&] {
    std::array<float, 4> y{};
    run("copy", {vector_of(x)}, {vector_of(y)}, [&] { y = x; });
  });
  EXPECT_EQ(r.status, 0) << r.err;
  const auto seen = tensors(r);
  ASSERT_THAT(seen, SizeIs(2));
  const auto expected = value::fingerprint(value::DType::float32, std::as_bytes(std::span(x)));
  for (const SeenTensor& tensor : seen) {
    EXPECT_EQ(tensor.info.fingerprint.own[0], expected.own[0]);
    EXPECT_EQ(tensor.info.fingerprint.count, 4u);
    EXPECT_EQ(tensor.info.fingerprint.dtype, JD_FLOAT32);
    EXPECT_EQ(tensor.info.fingerprint.mean, 0.625);
    EXPECT_THAT(tensor.sample, ElementsAre(1, -2, 3, 0.5));
  }
  EXPECT_EQ(seen[0].info.role, std::uint32_t{JD_INPUT});
  EXPECT_EQ(seen[1].info.role, std::uint32_t{JD_COMPUTED});
  EXPECT_NE(seen[0].info.storage, seen[1].info.storage);
}

TEST(Values, AreReadThroughTheirStrides) {
  const auto r = values_of([&] {
    std::array<float, 12> x{};
    std::iota(x.begin(), x.end(), 0.0F);
    std::array<float, 3> y{}, z{};
    const jd_value column = value_at(&x[1], JD_FLOAT32, {3}, {4});
    const jd_value turned = value_at(x.data(), JD_FLOAT32, {4, 3}, {1, 4});
    run("column", {column}, {vector_of(y)}, [] {});
    run("turn", {turned}, {vector_of(z)}, [] {});
  });
  const auto seen = tensors(r);
  ASSERT_THAT(seen, SizeIs(4));
  EXPECT_THAT(seen[0].sample, ElementsAre(1, 5, 9));
  EXPECT_EQ(seen[0].info.offset, 1);
  EXPECT_THAT(seen[2].sample, ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_EQ(seen[2].info.storage, seen[0].info.storage);
  EXPECT_EQ(seen[2].info.offset, 0);
}

TEST(Values, OfABufferThatIsUsedAgainAreToldApart) {
  const auto r = values_of([] {
    std::array<float, 4> a{1, 2, 3, 4}, b{};
    run("first", {vector_of(a)}, {vector_of(b)}, [&] { b = a; });
    run("in place", {vector_of(b)}, {vector_of(b)}, [&] {
      for (float& x : b) x *= 3;
    });
    run("last", {vector_of(b)}, {vector_of(a)}, [&] { a = b; });
  });
  const auto ops = operators(r);
  ASSERT_THAT(ops, SizeIs(3));
  EXPECT_THAT(ops[1].inputs, ElementsAre(ops[0].outputs[0]));
  EXPECT_NE(ops[1].outputs[0], ops[0].outputs[0]);
  EXPECT_THAT(ops[2].inputs, ElementsAre(ops[1].outputs[0]));
  const auto seen = tensors(r);
  const auto& before = seen[ops[0].outputs[0] - 1].info;
  const auto& after = seen[ops[1].outputs[0] - 1].info;
  EXPECT_EQ(before.storage, after.storage);
  EXPECT_LT(before.version, after.version);
  EXPECT_EQ(after.fingerprint.max, 12);
  // What was read first and written last is one storage, too.
  EXPECT_EQ(seen[ops[0].inputs[0] - 1].info.storage, seen[ops[2].outputs[0] - 1].info.storage);
}

TEST(Values, OfACacheAreAnewAfterEachRow) {
  const auto r = values_of([] {
    std::array<float, 8> cache{};
    std::array<float, 2> row{5, 6}, sum{};
    for (std::size_t i = 0; i < 2; ++i) {
      run("store", {vector_of(row)}, {value_at(&cache[2 * i], JD_FLOAT32, {1, 2})}, [&] {
        cache[2 * i] = row[0];
        cache[2 * i + 1] = row[1];
      });
      run("sum", {value_at(cache.data(), JD_FLOAT32, {static_cast<std::int64_t>(i) + 1, 2})},
          {vector_of(sum)}, [&] { sum = {row[0], row[1]}; });
    }
  });
  const auto ops = operators(r);
  const auto seen = tensors(r);
  ASSERT_THAT(ops, SizeIs(4));
  EXPECT_THAT(ops[1].inputs, ElementsAre(ops[0].outputs[0]));
  const auto& whole = seen[ops[3].inputs[0] - 1].info;
  const auto& second = seen[ops[2].outputs[0] - 1].info;
  EXPECT_EQ(whole.version, second.version);
  EXPECT_EQ(whole.storage, second.storage);
  EXPECT_EQ(whole.shape[0], 2);
  EXPECT_EQ(second.offset, 2);
  EXPECT_EQ(whole.role, std::uint32_t{JD_COMPUTED});
}

TEST(Values, ThatNobodyWroteAreTold) {
  const auto r = values_of([] {
    std::array<float, 4> a{1, 2, 3, 4}, b{};
    run("first", {vector_of(a)}, {vector_of(b)}, [&] { b = a; });
    b[2] = 7;  // behind the recorder's back
    run("second", {vector_of(b)}, {vector_of(a)}, [&] { a = b; });
  });
  const auto ops = operators(r);
  const auto seen = tensors(r);
  ASSERT_THAT(ops, SizeIs(2));
  EXPECT_NE(ops[1].inputs[0], ops[0].outputs[0]);
  EXPECT_EQ(seen[ops[1].inputs[0] - 1].info.role, std::uint32_t{JD_INPUT});
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.unseen_write")));
}

TEST(Values, OfADeviceAreFetched) {
  const auto r = recorded(
      [] {
        static std::array<float, 4> memory{9, 8, 7, 6};  // what only copy() may touch
        static int copies = 0;
        const jd_device device{
            "fake", nullptr,
            [](void*, void* to, const void* from, std::size_t bytes) {
              ++copies;
              const auto place = reinterpret_cast<std::uintptr_t>(from);
              std::memcpy(to, reinterpret_cast<char*>(memory.data()) + place - 0x1000, bytes);
            },
            nullptr, nullptr};
        jd_use_device(&device);
        jd_step_begin(nullptr);
        jd_step_begin(nullptr);
        const jd_value x = value_at(reinterpret_cast<void*>(0x1000), JD_FLOAT32, {2, 2});
        run("op", {x}, {}, [] {});
        jd_step_end();
        JD_REQUIRE(copies == 1);
      },
      {{"JOULEDIFF_PASSES", "values"}});
  EXPECT_EQ(r.status, 0) << r.err;
  ASSERT_THAT(tensors(r), SizeIs(1));
  EXPECT_THAT(tensors(r)[0].sample, ElementsAre(9, 8, 7, 6));
  EXPECT_THAT(operators(r)[0].json, HasSubstr("[2,2]:[2,1]:float32:fake"));
}

TEST(Values, OperatorsSayWhereTheyAreAndWhatTheyAreGiven) {
  const auto r = values_of([] {
    std::array<float, 2> x{1, 2};
    const jd_place caller{"a \"b\".cpp", "forward", 7, 0, nullptr};
    const jd_place place{"model.cpp", "void a::layer(int (*)())", 3, 0, &caller};
    jd_value weight = vector_of(x);
    weight.role = JD_PARAMETER;
    run("op", {weight}, {}, [] {}, &place, R"({"eps":"\"1\""})");
    run("op", {weight}, {}, [] {}, &place, "no object");
  });
  EXPECT_THAT(
      r.facts("stack"),
      ElementsAre(R"({"id":0,"frames":[["model.cpp",3,"a::layer"],["a \"b\".cpp",7,"forward"]]})"));
  const auto ops = operators(r);
  ASSERT_THAT(ops, SizeIs(2));
  EXPECT_THAT(ops[0].json, HasSubstr(R"("arguments":{"eps":"\"1\""})"));
  EXPECT_THAT(ops[0].json, HasSubstr(R"("stack":0)"));
  EXPECT_THAT(ops[1].json, testing::Not(HasSubstr("no object")));
  const auto seen = tensors(r);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].info.role, std::uint32_t{JD_PARAMETER});
  EXPECT_THAT(seen[0].sample, IsEmpty());
}

TEST(Values, ThatNoMemoryHoldsAreLeftOutAndTold) {
  const auto r = recorded(
      [] {
        const std::array<float, 4> x{1, 2, 3, 4};
        std::array<float, 4> y{};
        const std::int64_t huge = std::int64_t{1} << 40, most = INT64_MAX;
        const auto of = [&](std::vector<std::int64_t> shape,
                            std::vector<std::int64_t> stride = {}) {
          return value_at(x.data(), JD_FLOAT32, std::move(shape), std::move(stride));
        };
        while (jd_step_begin(nullptr) >= 0) {
          run("odd", {of({huge, huge}), of({most, most}), of({2, 2}, {most, 1}), of({-3}), of({4})},
              {of({huge, huge, huge}), vector_of(y)}, [&] { y = x; });
        }
      },
      {{"JOULEDIFF_STEPS", "1"}});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(spool::Type::tensor), SizeIs(2));
  EXPECT_THAT(operators(r), SizeIs(1));
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("5 values have a shape")));
}

TEST(Observe, LeavesOutWhatNoMemoryHolds) {
  const auto r = recorded([] {
    jd_tensor_info info{};
    info.id = 1;
    info.dims = 2;
    info.shape[0] = info.shape[1] = INT64_MAX;
    info.fingerprint.dtype = JD_FLOAT32;
    const float x = 1;
    jd_observe(&info, &x);
  });
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_THAT(r.payloads(spool::Type::tensor), IsEmpty());
  EXPECT_THAT(r.facts("diagnostic"), testing::Contains(HasSubstr("record.impossible_value")));
}

TEST(Values, WithoutElementsAreLeftOut) {
  const auto r = values_of([] {
    std::array<float, 2> x{};
    jd_value too_many = vector_of(x);
    too_many.dims = 99;
    run("op",
        {value_at(nullptr, JD_FLOAT32, {2}), value_at(x.data(), JD_FLOAT32, {2, 0}), too_many},
        {value_at(x.data(), JD_FLOAT32, {-1})}, [] {});
  });
  EXPECT_EQ(r.status, 0) << r.err;
  ASSERT_THAT(operators(r), SizeIs(1));
  EXPECT_THAT(operators(r)[0].inputs, IsEmpty());
  EXPECT_THAT(tensors(r), IsEmpty());
}

TEST(Observe, ReportsATensorThatTheCallerKeepsTrackOf) {
  const auto r = recorded([] {
    const std::array<double, 3> x{1, 2, 6};
    jd_tensor_info info{};
    info.id = 44;
    info.dims = 1;
    info.shape[0] = 3;
    info.stride[0] = 1;
    info.fingerprint.dtype = JD_FLOAT64;
    jd_observe(&info, x.data());
    JD_REQUIRE(info.fingerprint.mean == 3);
    info.id = 45;
    info.role = JD_PARAMETER;
    jd_observe(&info, x.data());
    info.id = 46;
    info.fingerprint.dtype = JD_OTHER;
    jd_observe(&info, x.data());
  });
  EXPECT_EQ(r.status, 0) << r.err;
  const auto seen = tensors(r);
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[0].info.id, 44u);
  EXPECT_THAT(seen[0].sample, ElementsAre(1, 2, 6));
  EXPECT_THAT(seen[1].sample, IsEmpty());
  EXPECT_EQ(seen[2].info.fingerprint.count, 3u);
  EXPECT_EQ(seen[2].info.fingerprint.own[0], 46u);
}

}  // namespace
}  // namespace joulediff::record
