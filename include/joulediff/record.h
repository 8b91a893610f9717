/* The C ABI of Joulediff's recorder: what engines and plug-ins call.
 *
 * Every function is safe to call at any time from any thread, never throws, never prints on stdout,
 * never aborts. Without JOULEDIFF_SPOOL in the environment the recorder is off and every call is a
 * cheap no-op, so that an engine may ship with the calls in place.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC (jd_now). Strings are UTF-8; JSON arguments are objects.
 * What each JSON object holds is listed in docs/recording.md.
 */
#ifndef JOULEDIFF_RECORD_H
#define JOULEDIFF_RECORD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JD_ABI 2
#define JD_MAX_DIMS 8

/* The passes of a recording, in the order in which one process makes them. */
enum jd_pass { JD_WARMUP = 0, JD_VALUES = 1, JD_ORDER = 2, JD_TRACE = 3, JD_REPLAY = 4 };

/* What a tensor is to the step. */
enum jd_role {
  JD_COMPUTED = 0,  /* written by an operator of the step */
  JD_INPUT = 1,     /* comes from outside the step and differs from step to step */
  JD_PARAMETER = 2, /* a weight or buffer of a model */
  JD_CONSTANT = 3   /* made inside or outside the step from nothing but numbers */
};

/* docs/fingerprint.md defines each field; dtype codes are those of src/value/fingerprint.h. */
typedef struct jd_fingerprint {
  uint64_t count, nan, positive_infinity, negative_infinity;
  double mean, mean_abs, rms, l4, m3, min, max;
  uint32_t own[2], bf16[2], fp16[2];
  uint8_t dtype, distinct, reserved[6];
} jd_fingerprint;

/* One value: a geometry over a version of a storage. The same (storage, version, geometry) is
 * reported once. `storage` is unique among all storages of the process's life. */
typedef struct jd_tensor_info {
  uint64_t id; /* chosen by the caller, unique in the process */
  uint64_t storage;
  uint64_t version; /* grows with each write to the storage */
  int64_t offset;   /* elements from the storage's begin */
  uint32_t dims;
  uint32_t role; /* enum jd_role */
  int64_t shape[JD_MAX_DIMS];
  int64_t stride[JD_MAX_DIMS];
  jd_fingerprint fingerprint;
  uint32_t sample_count; /* 0: no sample for this geometry */
  uint32_t reserved;
  const float* sample;
} jd_tensor_info;

/* JD_ABI of the library, 0 if it is switched off. */
int jd_active(void);
uint64_t jd_now(void);

/* One fact of a topic: manifest, setting, stack, diagnostic, ... */
void jd_fact(const char* topic, const char* json);

/* `inputs`: shapes and dtypes of what the step was given, as "float32[8,1024]"; null: unknown.
 * Steps of equal text are taken to do the same work. */
void jd_step(uint32_t pass, uint32_t index, uint64_t begin_ns, uint64_t end_ns, const char* inputs);

void jd_tensor(const jd_tensor_info* tensor);

/* One operator of the values pass, in the order of execution; `index` counts from 0 in the step. */
void jd_operator(uint32_t index, const char* name, const uint64_t* inputs, uint32_t input_count,
                 const uint64_t* outputs, uint32_t output_count, const char* json);

/* Brackets one operator of the order pass: its host time is noted, and the kernels launched between
 * are charged to operator `index` of the step. Calls nest. */
void jd_operator_begin(uint32_t step, uint32_t index, const char* name);
void jd_operator_end(void);

/* Switches kernel records: JD_ORDER (kernels with the operators that launched them), JD_TRACE
 * (kernels only) or JD_WARMUP (off). Returns 1 if kernels are recorded now, 0 if this process has
 * no device to record from. Flushes what was recorded before. */
int jd_kernels(uint32_t pass);

/* Seconds that operator `index` took in the order pass, mean over its steps: of its kernels where
 * kernels are recorded, else of the host. Negative: unknown. */
double jd_operator_seconds(uint32_t index);

/* `count` executions of a distinct operator between begin_ns and end_ns, back to back. The
 * signatures "joulediff.static" (the device awake and doing next to nothing) and "joulediff.idle"
 * (a context and no work) stand for the floor. */
void jd_replay(const char* signature, uint64_t begin_ns, uint64_t end_ns, uint64_t count);

/* Writes all that is buffered; also done at exit. */
void jd_flush(void);

#ifdef __cplusplus
}
#endif
#endif
