/* onnx_slots.h - the few functions of ONNX Runtime's C API that are used, each with its position in
 * the library's table (struct OrtApi).  Positions never change from one version to the next: new
 * functions are added at the end.  A test compares this list with the library's own header
 * (tests/conformance/onnx_slots), which the build does not need.
 *
 * ONNX_SLOTS(X): X(field, name in the header, position, result, (arguments)). Functions that return
 * a struct ort_status * return NULL on success. */
#ifndef SHOAL_ENGINE_ONNX_ONNX_SLOTS_H
#define SHOAL_ENGINE_ONNX_ONNX_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#define ONNX_API_VERSION 22 /* passed to GetApi: ONNX Runtime 1.22 and later */

/* Values of the header's enums. */
enum { ORT_LOG_FATAL = 4, ORT_OPTIMIZE_ALL = 99, ORT_SEQUENTIAL_MODE = 0 };
enum { ORT_DEVICE_ALLOCATOR = 0, ORT_MEM_DEFAULT = 0, ORT_ONNX_TENSOR = 1 };
enum onnx_type {                     /* of the elements of a tensor */
                 ONNX_TYPE_NONE = 0, /* not a tensor */
                 ONNX_TYPE_F32 = 1,
                 ONNX_TYPE_I32 = 6,
                 ONNX_TYPE_I64 = 7,
                 ONNX_TYPE_BOOL = 9,
                 ONNX_TYPE_F16 = 10,
};

struct ort_status;
struct ort_env;
struct ort_session;
struct ort_session_options;
struct ort_memory_info;
struct ort_allocator;
struct ort_type_info;
struct ort_shape_info;
struct onnx_value; /* the library's OrtValue */

#define ONNX_STATUS struct ort_status *

/* clang-format off */
#define ONNX_SLOTS(X)                                                                              \
    X(error_message, GetErrorMessage, 2, const char *, (const struct ort_status *))                \
    X(create_env, CreateEnv, 3, ONNX_STATUS, (int level, const char *id, struct ort_env **))       \
    X(create_session, CreateSession, 7, ONNX_STATUS,                                               \
      (const struct ort_env *, const char *path, const struct ort_session_options *,               \
       struct ort_session **))                                                                     \
    X(run, Run, 9, ONNX_STATUS,                                                                    \
      (struct ort_session *, const void *run_options, const char *const *in_names,                 \
       const struct onnx_value *const *in, size_t n_in, const char *const *out_names,              \
       size_t n_out, struct onnx_value **out))                                                     \
    X(create_options, CreateSessionOptions, 10, ONNX_STATUS, (struct ort_session_options **))      \
    X(set_mode, SetSessionExecutionMode, 13, ONNX_STATUS, (struct ort_session_options *, int))     \
    X(no_mem_pattern, DisableMemPattern, 17, ONNX_STATUS, (struct ort_session_options *))          \
    X(set_log_level, SetSessionLogSeverityLevel, 22, ONNX_STATUS,                                  \
      (struct ort_session_options *, int))                                                         \
    X(set_optimization, SetSessionGraphOptimizationLevel, 23, ONNX_STATUS,                         \
      (struct ort_session_options *, int))                                                         \
    X(set_threads, SetIntraOpNumThreads, 24, ONNX_STATUS, (struct ort_session_options *, int))     \
    X(n_inputs, SessionGetInputCount, 30, ONNX_STATUS, (const struct ort_session *, size_t *))     \
    X(n_outputs, SessionGetOutputCount, 31, ONNX_STATUS, (const struct ort_session *, size_t *))   \
    X(input_type, SessionGetInputTypeInfo, 33, ONNX_STATUS,                                        \
      (const struct ort_session *, size_t, struct ort_type_info **))                               \
    X(output_type, SessionGetOutputTypeInfo, 34, ONNX_STATUS,                                      \
      (const struct ort_session *, size_t, struct ort_type_info **))                               \
    X(input_name, SessionGetInputName, 36, ONNX_STATUS,                                            \
      (const struct ort_session *, size_t, struct ort_allocator *, char **))                       \
    X(output_name, SessionGetOutputName, 37, ONNX_STATUS,                                          \
      (const struct ort_session *, size_t, struct ort_allocator *, char **))                       \
    X(wrap_tensor, CreateTensorWithDataAsOrtValue, 49, ONNX_STATUS,                                \
      (const struct ort_memory_info *, void *data, size_t n_bytes, const int64_t *dims,            \
       size_t n_dims, int type, struct onnx_value **))                                             \
    X(is_tensor, IsTensor, 50, ONNX_STATUS, (const struct onnx_value *, int *))                    \
    X(tensor_data, GetTensorMutableData, 51, ONNX_STATUS, (struct onnx_value *, void **))          \
    X(shape_of_type, CastTypeInfoToTensorInfo, 55, ONNX_STATUS,                                    \
      (const struct ort_type_info *, const struct ort_shape_info **))                              \
    X(kind_of_type, GetOnnxTypeFromTypeInfo, 56, ONNX_STATUS,                                      \
      (const struct ort_type_info *, int *))                                                       \
    X(element_type, GetTensorElementType, 60, ONNX_STATUS, (const struct ort_shape_info *, int *)) \
    X(n_dims, GetDimensionsCount, 61, ONNX_STATUS, (const struct ort_shape_info *, size_t *))      \
    X(dims, GetDimensions, 62, ONNX_STATUS, (const struct ort_shape_info *, int64_t *, size_t))    \
    X(shape_of_value, GetTensorTypeAndShape, 65, ONNX_STATUS,                                      \
      (const struct onnx_value *, struct ort_shape_info **))                                       \
    X(cpu_memory, CreateCpuMemoryInfo, 69, ONNX_STATUS,                                            \
      (int allocator, int mem_type, struct ort_memory_info **))                                    \
    X(allocator_free, AllocatorFree, 76, ONNX_STATUS, (struct ort_allocator *, void *))            \
    X(default_allocator, GetAllocatorWithDefaultOptions, 78, ONNX_STATUS,                          \
      (struct ort_allocator **))                                                                   \
    X(release_env, ReleaseEnv, 92, void, (struct ort_env *))                                       \
    X(release_status, ReleaseStatus, 93, void, (struct ort_status *))                              \
    X(release_memory_info, ReleaseMemoryInfo, 94, void, (struct ort_memory_info *))                \
    X(release_session, ReleaseSession, 95, void, (struct ort_session *))                           \
    X(release_value, ReleaseValue, 96, void, (struct onnx_value *))                                \
    X(release_type, ReleaseTypeInfo, 98, void, (struct ort_type_info *))                           \
    X(release_shape, ReleaseTensorTypeAndShapeInfo, 99, void, (struct ort_shape_info *))           \
    X(release_options, ReleaseSessionOptions, 100, void, (struct ort_session_options *))           \
    X(add_config, AddSessionConfigEntry, 130, ONNX_STATUS,                                         \
      (struct ort_session_options *, const char *key, const char *value))
/* clang-format on */

#endif
