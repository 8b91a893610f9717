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

#include <stddef.h>
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

/* The same of an operator of the order pass that ran by itself between begin_ns and end_ns, where a
 * bracket would hold more than its time. It launches no kernels. */
void jd_operator_took(uint32_t step, uint32_t index, const char* name, uint64_t begin_ns,
                      uint64_t end_ns);

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

/* ---- For engines (docs/engines.md) -----------------------------------------------------------
 *
 * An engine brackets its steps and hands each operator to jd_run. Which pass a step makes, what
 * identifies a value, fingerprints, signatures and the talk with the launcher in replay follow from
 * that: nothing above is needed but jd_fact, for the manifest and the settings.
 *
 * Callbacks must not throw. */

/* The codes of docs/fingerprint.md. */
enum jd_dtype {
  JD_OTHER = 0, /* no values that could be read */
  JD_FLOAT32 = 1,
  JD_FLOAT64 = 2,
  JD_FLOAT16 = 3,
  JD_BFLOAT16 = 4,
  JD_INT8 = 5,
  JD_INT16 = 6,
  JD_INT32 = 7,
  JD_INT64 = 8,
  JD_UINT8 = 9,
  JD_BOOLEAN = 10,
  JD_COMPLEX64 = 11,
  JD_COMPLEX128 = 12,
  JD_FLOAT8_E4M3 = 13,
  JD_FLOAT8_E5M2 = 14
};

/* A tensor in the engine's memory. Values are told apart by where they lie and by the operators
 * that wrote there: slices, caches and buffers that are used again need nothing special. */
typedef struct jd_value {
  const void* data; /* the first element */
  uint32_t dtype;   /* enum jd_dtype */
  uint32_t role;    /* enum jd_role of what no operator of the step has written; 0: JD_INPUT */
  uint32_t dims;
  uint32_t reserved;
  int64_t shape[JD_MAX_DIMS];
  int64_t stride[JD_MAX_DIMS]; /* in elements; all 0: contiguous */
} jd_value;

/* A place in the source, and the place that called it (null: not told). */
typedef struct jd_place {
  const char* file;
  const char* function;
  uint32_t line;
  uint32_t reserved;
  const struct jd_place* caller;
} jd_place;

enum jd_op_flags {
  JD_ONCE = 1 /* running it again would not do the same (a communication, random numbers): it is
                 not replayed, and its energy is estimated by its time */
};

/* One call of an operator. It reads its inputs and writes its outputs and nothing else; a tensor
 * that is changed in place is both. */
typedef struct jd_op {
  const char* name;      /* "engine.linear" */
  const char* module;    /* where in the model: "h.0.attn"; may be null */
  const char* arguments; /* what is no tensor, as a JSON object; may be null */
  const jd_place* place; /* the call's; may be null */
  const jd_value* inputs;
  const jd_value* outputs;
  uint32_t input_count, output_count;
  uint32_t flags; /* of enum jd_op_flags */
  uint32_t reserved;
} jd_op;

/* How to reach memory that is not the host's, and how to wait for what computes there. */
typedef struct jd_device {
  const char* name; /* "cuda" */
  void* context;    /* handed to each function */
  void (*copy)(void* context, void* to, const void* from, size_t bytes); /* either way; done at
                                                                            return */
  void (*synchronize)(void* context);
  void (*spin)(void* context); /* queues about 1 ms of the device awake and doing next to nothing;
                                  null: its static power stays unknown */
} jd_device;

/* From the next step on; call it before the device is first used. What it points to is copied, the
 * name with it. Without it all memory is the host's. */
void jd_use_device(const jd_device* device);

/* 1 while steps are wanted, 0 when the recording is complete or there is none. A server needs not
 * ask; a benchmark loops until it is 0. */
int jd_recording(void);

/* Begins a step; `inputs` says what shapes go in, as "tokens int32 [1,32]" (may be null). Returns
 * the pass that the step makes, or -1: it is not recorded. Steps belong to one thread. */
int jd_step_begin(const char* inputs);

/* Ends it; so does the next jd_step_begin. */
void jd_step_end(void);

/* The pass of the step that is open, or -1. An engine may call its operators directly, without
 * describing them to jd_run, while this is negative, JD_WARMUP or JD_TRACE. */
int jd_pass(void);

/* execute(context), recorded as the pass wants it: once with its values read before and after, once
 * with its time and kernels charged to it, or, in replay, as often as the meter needs. Operators
 * inside an operator are part of it. */
void jd_run(const jd_op* op, void (*execute)(void* context), void* context);

/* For callers that keep track of values themselves: jd_tensor with the fingerprint, and for
 * computed values and inputs the sample, of the tensor that begins at `data`, in the memory of
 * jd_use_device. `dtype` is that of info->fingerprint; offset, shape and stride describe it. */
void jd_observe(jd_tensor_info* info, const void* data);

/* The fingerprint of elements that lie one after another in the host's memory, in any order that
 * visits each once; `dtype` is that of *fingerprint. Reports nothing, and needs no recording. */
void jd_fingerprint_of(jd_fingerprint* fingerprint, const void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
