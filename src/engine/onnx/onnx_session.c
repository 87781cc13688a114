/* onnx_session.c - see onnx_session.h. */
#include "engine/onnx/onnx_session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread/crew.h"
#include "kernels/quants/quant.h"

#define MAX_IO 4096u /* inputs or outputs; a model of 200 layers has 800 */

size_t onnx_type_bytes(int type)
{
    switch (type) {
    case ONNX_TYPE_F32:
    case ONNX_TYPE_I32:
        return 4;
    case ONNX_TYPE_I64:
        return 8;
    case ONNX_TYPE_F16:
        return 2;
    case ONNX_TYPE_BOOL:
        return 1;
    default:
        return 0;
    }
}

const char *onnx_type_name(int type)
{
    static const char *const names[] = {"no tensor", "float",  "uint8",  "int8",   "uint16",
                                        "int16",     "int32",  "int64",  "string", "bool",
                                        "float16",   "double", "uint32", "uint64"};
    return type >= 0 && (size_t)type < sizeof(names) / sizeof(*names) ? names[type] : "other";
}

void onnx_shape_print(char *out, size_t cap, const struct onnx_shape *shape)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < shape->n_dims && at + 1 < cap; i++) {
        int n = snprintf(out + at, cap - at, "%s%lld", i ? ", " : "[", (long long)shape->dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at + 1 < cap)
        snprintf(out + at, cap - at, shape->n_dims ? "]" : "[]");
}

void onnx_put(void *data, int type, size_t i, int64_t v)
{
    if (type == ONNX_TYPE_I64)
        ((int64_t *)data)[i] = v;
    else if (type == ONNX_TYPE_I32)
        ((int32_t *)data)[i] = (int32_t)v;
    else
        ((uint8_t *)data)[i] = v != 0;
}

void onnx_floats(float *out, const void *data, int type, size_t at, size_t n)
{
    if (type == ONNX_TYPE_F32) {
        memcpy(out, (const float *)data + at, n * sizeof(*out));
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = quant_f16_to_f32(((const uint16_t *)data)[at + i]);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int read_shape(const struct onnx_lib *lib, const struct ort_shape_info *info,
                      struct onnx_shape *shape, struct err *e)
{
    size_t n = 0;
    int rc =
        onnx_lib_check(lib, lib->api.element_type(info, &shape->type), SHOAL_EFORMAT, "type", e);
    if (rc == 0)
        rc = onnx_lib_check(lib, lib->api.n_dims(info, &n), SHOAL_EFORMAT, "shape", e);
    if (rc == 0 && n > ONNX_MAX_DIMS)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "a tensor of %zu dimensions, %u at most", n,
                     ONNX_MAX_DIMS);
    if (rc == 0)
        rc = onnx_lib_check(lib, lib->api.dims(info, shape->dims, n), SHOAL_EFORMAT, "shape", e);
    shape->n_dims = rc == 0 ? (uint32_t)n : 0;
    return rc;
}

static int read_type(const struct onnx_lib *lib, struct ort_type_info *type,
                     struct onnx_shape *shape, struct err *e)
{
    const struct ort_shape_info *info = NULL;
    int kind = 0;
    int rc = onnx_lib_check(lib, lib->api.kind_of_type(type, &kind), SHOAL_EFORMAT, "type", e);
    if (rc < 0 || kind != ORT_ONNX_TENSOR) /* sequences and maps stay ONNX_TYPE_NONE */
        return rc;
    rc = onnx_lib_check(lib, lib->api.shape_of_type(type, &info), SHOAL_EFORMAT, "type", e);
    return rc < 0 || !info ? rc : read_shape(lib, info, shape, e);
}

static int read_io(const struct onnx_session *s, bool input, size_t i, struct onnx_io *io,
                   struct err *e)
{
    const struct onnx_lib *lib = s->lib;
    const struct onnx_api *api = &lib->api;
    struct ort_type_info *type = NULL;
    struct ort_allocator *allocator = NULL;
    char *name = NULL;
    int rc = onnx_lib_check(lib, api->default_allocator(&allocator), SHOAL_EINTERNAL, "names", e);
    if (rc == 0)
        rc = onnx_lib_check(
            lib, (input ? api->input_name : api->output_name)(s->session, i, allocator, &name),
            SHOAL_EFORMAT, "names", e);
    if (rc < 0)
        return rc;
    io->name = mem_strdup(name);
    struct ort_status *st = api->allocator_free(allocator, name);
    if (st)
        api->release_status(st);
    if (!io->name)
        return err_set(e, SHOAL_ENOMEM, "out of memory for names of inputs and outputs");
    rc = onnx_lib_check(lib, (input ? api->input_type : api->output_type)(s->session, i, &type),
                        SHOAL_EFORMAT, io->name, e);
    if (rc == 0 && (rc = read_type(lib, type, &io->shape, e)) < 0)
        err_wrap(e, "%s", io->name);
    if (type)
        api->release_type(type);
    return rc;
}

static int read_ios(struct onnx_session *s, bool input, struct err *e)
{
    const struct onnx_api *api = &s->lib->api;
    size_t n = 0;
    int rc = onnx_lib_check(s->lib, (input ? api->n_inputs : api->n_outputs)(s->session, &n),
                            SHOAL_EFORMAT, "inputs", e);
    if (rc < 0)
        return rc;
    if (n > MAX_IO)
        return err_set(e, SHOAL_ELIMIT, "%zu %s, %u at most", n, input ? "inputs" : "outputs",
                       MAX_IO);
    struct onnx_io *ios = mem_zalloc_n(n ? n : 1, sizeof(*ios));
    const char **names = mem_zalloc_n(n ? n : 1, sizeof(*names));
    *(input ? &s->in : &s->out) = ios;
    *(input ? &s->in_names : &s->out_names) = names;
    if (!ios || !names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu names", n);
    *(input ? &s->n_in : &s->n_out) = n;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = read_io(s, input, i, &ios[i], e);
        names[i] = ios[i].name;
    }
    return rc;
}

/* Sequences differ in length from run to run, and memory plans by shape would be made and kept for
 * each length: they are off.  The arena stays on: without it a long prompt needed several times the
 * memory (heap fragmentation) and decoding was slower.  Threads spin only inside a run. */
static int configure(struct onnx_session *s, struct ort_session_options *options, struct err *e)
{
    const struct onnx_api *api = &s->lib->api;
    struct ort_status *st = api->set_threads(options, (int)s->n_threads);
    st = st ? st : api->set_mode(options, ORT_SEQUENTIAL_MODE);
    st = st ? st : api->set_optimization(options, ORT_OPTIMIZE_ALL);
    st = st ? st : api->set_log_level(options, ORT_LOG_FATAL);
    st = st ? st : api->no_mem_pattern(options);
    st = st ? st : api->add_config(options, "session.force_spinning_stop", "1");
    return onnx_lib_check(s->lib, st, SHOAL_EINTERNAL, "options of ONNX Runtime", e);
}

static int open_file(struct onnx_session *s, const char *path, struct err *e)
{
    const struct onnx_api *api = &s->lib->api;
    struct ort_session_options *options = NULL;
    struct stat st;
    if (stat(path, &st) < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, SHOAL_EIO, "%s is not a file", path);
    if (st.st_size == 0)
        return err_set(e, SHOAL_EFORMAT, "%s is empty", path);
    s->file_bytes = (uint64_t)st.st_size;
    int rc = onnx_lib_check(s->lib, api->cpu_memory(ORT_DEVICE_ALLOCATOR, ORT_MEM_DEFAULT, &s->cpu),
                            SHOAL_ENOMEM, "memory of ONNX Runtime", e);
    if (rc == 0)
        rc = onnx_lib_check(s->lib, api->create_options(&options), SHOAL_ENOMEM,
                            "options of ONNX Runtime", e);
    if (rc == 0)
        rc = configure(s, options, e);
    if (rc == 0)
        rc = onnx_lib_check(s->lib, api->create_session(s->lib->env, path, options, &s->session),
                            SHOAL_EFORMAT, "ONNX Runtime cannot open it", e);
    if (options)
        api->release_options(options);
    if (rc == 0)
        rc = read_ios(s, true, e);
    if (rc == 0)
        rc = read_ios(s, false, e);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

int onnx_session_open(struct onnx_session **out, const char *path,
                      const struct onnx_session_opts *o, struct err *e)
{
    *out = NULL;
    struct onnx_session *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a session");
    s->n_threads = o->n_threads ? o->n_threads : crew_cores();
    int rc = s->n_threads > 1024 ? err_set(e, SHOAL_EINVAL, "%u threads", s->n_threads) : 0;
    if (rc == 0)
        rc = onnx_lib_open(&s->lib, e);
    if (rc == 0)
        rc = open_file(s, path, e);
    if (rc < 0) {
        onnx_session_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

static void free_ios(struct onnx_io *ios, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mem_free(ios[i].name);
    mem_free(ios);
}

void onnx_session_close(struct onnx_session *s)
{
    if (!s)
        return;
    if (s->session)
        s->lib->api.release_session(s->session);
    if (s->cpu)
        s->lib->api.release_memory_info(s->cpu);
    free_ios(s->in, s->n_in);
    free_ios(s->out, s->n_out);
    mem_free(s->in_names);
    mem_free(s->out_names);
    onnx_lib_close(s->lib);
    mem_free(s);
}

static int find(const struct onnx_io *ios, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ios[i].name, name) == 0)
            return (int)i;
    return -1;
}

int onnx_session_input(const struct onnx_session *s, const char *name)
{
    return find(s->in, s->n_in, name);
}

int onnx_session_output(const struct onnx_session *s, const char *name)
{
    return find(s->out, s->n_out, name);
}

bool onnx_session_has_past(const struct onnx_session *s)
{
    for (size_t i = 0; i < s->n_in; i++)
        if (strncmp(s->in[i].name, ONNX_PAST, strlen(ONNX_PAST)) == 0)
            return true;
    return false;
}

/* ---- running -------------------------------------------------------------------------------- */

int onnx_session_run(struct onnx_session *s, struct onnx_value *const *in, const uint32_t *want,
                     uint32_t n_want, struct onnx_value **out, struct err *e)
{
    for (uint32_t i = 0; i < n_want; i++) {
        s->out_names[i] = s->out[want[i]].name;
        out[i] = NULL;
    }
    struct ort_status *st =
        s->lib->api.run(s->session, NULL, s->in_names, (const struct onnx_value *const *)in,
                        s->n_in, s->out_names, n_want, out);
    if (!st)
        return 0;
    for (uint32_t i = 0; i < n_want; i++) {
        onnx_value_release(s, out[i]);
        out[i] = NULL;
    }
    return onnx_lib_check(s->lib, st, SHOAL_EINTERNAL, "ONNX Runtime", e);
}

int onnx_value_wrap(struct onnx_value **out, struct onnx_session *s, void *data,
                    const struct onnx_shape *shape, struct err *e)
{
    size_t bytes = onnx_type_bytes(shape->type);
    *out = NULL;
    for (uint32_t i = 0; i < shape->n_dims; i++)
        if (shape->dims[i] < 0 || !mem_mul(&bytes, bytes, (size_t)shape->dims[i]))
            return err_set(e, SHOAL_ELIMIT, "a tensor with dimension %lld",
                           (long long)shape->dims[i]);
    /* an empty tensor needs an address too, which is never read */
    return onnx_lib_check(s->lib,
                          s->lib->api.wrap_tensor(s->cpu, data ? data : s, bytes, shape->dims,
                                                  shape->n_dims, shape->type, out),
                          SHOAL_ENOMEM, "tensor", e);
}

int onnx_value_get(struct onnx_session *s, struct onnx_value *v, struct onnx_shape *shape,
                   const void **data, struct err *e)
{
    const struct onnx_api *api = &s->lib->api;
    struct ort_shape_info *info = NULL;
    void *p = NULL;
    int yes = 0;
    int rc = onnx_lib_check(s->lib, api->is_tensor(v, &yes), SHOAL_EFORMAT, "output", e);
    if (rc == 0 && !yes)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "an output that is not a tensor");
    if (rc == 0)
        rc = onnx_lib_check(s->lib, api->shape_of_value(v, &info), SHOAL_EFORMAT, "output", e);
    if (rc == 0)
        rc = read_shape(s->lib, info, shape, e);
    if (info)
        api->release_shape(info);
    if (rc == 0)
        rc = onnx_lib_check(s->lib, api->tensor_data(v, &p), SHOAL_EFORMAT, "output", e);
    *data = p;
    return rc;
}

void onnx_value_release(struct onnx_session *s, struct onnx_value *v)
{
    if (v)
        s->lib->api.release_value(v);
}
