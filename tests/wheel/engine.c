/* The smallest engine that records itself: one operator a step, through every pass but replay. */
#include <joulediff/record.h>
#include <stddef.h>

static void tensor(uint64_t id, uint32_t role) {
  jd_tensor_info info = {.id = id, .storage = id, .dims = 1, .role = role, .shape = {64}, .stride = {1}};
  info.fingerprint.count = 64;
  info.fingerprint.mean = (double)id;
  info.fingerprint.own[0] = info.fingerprint.bf16[0] = info.fingerprint.fp16[0] = (uint32_t)id;
  info.fingerprint.dtype = 1;
  info.fingerprint.distinct = 3;
  jd_tensor(&info);
}

static void step(uint32_t pass, uint32_t index) {
  const uint64_t begin = jd_now();
  if (pass == JD_ORDER) jd_operator_begin(index, 0, "engine.double");
  while (jd_now() - begin < 20000000) {
  }
  if (pass == JD_ORDER) jd_operator_end();
  jd_step(pass, index, begin, jd_now(), NULL);
}

int main(void) {
  const uint64_t input = 1, output = 2;
  jd_fact("manifest", "{\"work_unit\": \"item\", \"work_per_step\": 64}");
  tensor(input, JD_INPUT);
  tensor(output, JD_COMPUTED);
  jd_operator(0, "engine.double", &input, 1, &output, 1, "{\"signature\": \"double(64)\"}");
  step(JD_VALUES, 0);
  for (uint32_t index = 0; index < 3; ++index) step(JD_ORDER, index);
  for (uint32_t index = 0; index < 20; ++index) step(JD_TRACE, index);
  return jd_active() == JD_ABI ? 0 : 1;
}
