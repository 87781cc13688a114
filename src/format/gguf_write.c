/* gguf_write.c - see gguf_write.h. */
#include "format/gguf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/room.h"

enum {
    DEFAULT_ALIGNMENT = 32,
    MAX_TENSOR_NAME = 63, /* the most that other readers accept */
    OUT_BYTES = 1 << 18,  /* small pieces are buffered here, large ones are written directly */
    TEMP_ATTEMPTS = 100,
};

struct tensor {
    char *name;
    enum quant_type type;
    uint32_t n_dims;
    uint64_t dims[MODEL_FILE_MAX_DIMS], offset, n_bytes;
};

#define MAX_HEADER_BYTES ((size_t)1 << 31)
#define VERSION 3u

enum progress { PROGRESS_HEADER, PROGRESS_DATA, PROGRESS_DONE };

struct gguf_write {
    char *path, *temp;
    int fd;
    bool temp_exists;
    enum progress progress;
    struct model_file *meta; /* holds the first error of all sticky calls */
    struct tensor *tensors;
    size_t n_tensors, cap_tensors;
    uint32_t alignment;
    uint64_t data_offset, total, position; /* in the file; position includes bytes in out */
    size_t at_tensor;                      /* the tensor whose data comes next */
    uint64_t at_byte;                      /* offset within that tensor */
    uint8_t *out;
    size_t n_out;
};

/* Opens a file of a new name next to path: the rename at the end must not cross file systems. */
static int open_temp(struct gguf_write *w, struct err *e)
{
    size_t n = strlen(w->path) + 40;
    w->temp = mem_alloc(n);
    if (!w->temp)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the name of a temporary file");
    for (int i = 0; i < TEMP_ATTEMPTS; i++) {
        snprintf(w->temp, n, "%s.part-%ld-%d", w->path, (long)getpid(), i);
        w->fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) {
            w->temp_exists = true;
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return err_set(e, SHOAL_EIO, "cannot create %s: %s", w->path, strerror(errno));
}

int gguf_write_create(struct gguf_write **out, const char *path, struct err *e)
{
    struct stat st;
    int rc = 0;

    *out = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* rename() would replace a device */
        return err_set(e, SHOAL_EIO, "cannot write %s: not a regular file", path);
    struct gguf_write *w = mem_zalloc(sizeof(*w));
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the gguf writer");
    w->fd = -1;
    w->path = mem_strdup(path);
    w->out = mem_alloc(OUT_BYTES);
    if (!w->path || !w->out)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the gguf writer");
    if (rc == 0)
        rc = model_file_create(&w->meta, e);
    if (rc == 0)
        rc = open_temp(w, e);
    if (rc < 0) {
        gguf_write_destroy(w);
        return rc;
    }
    *out = w;
    return 0;
}

void gguf_write_destroy(struct gguf_write *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->temp_exists)
        unlink(w->temp);
    for (size_t i = 0; i < w->n_tensors; i++)
        mem_free(w->tensors[i].name);
    model_file_close(w->meta);
    mem_free(w->tensors);
    mem_free(w->out);
    mem_free(w->temp);
    mem_free(w->path);
    mem_free(w);
}

/* True while the sticky calls may continue. */
static bool ready(struct gguf_write *w)
{
    if (w->meta->first.code == 0 && w->progress != PROGRESS_HEADER)
        err_set(&w->meta->first, SHOAL_EINTERNAL, "metadata set after the header was written");
    return w->meta->first.code == 0;
}

static struct model_file *meta(struct gguf_write *w)
{
    (void)ready(w);
    return w->meta;
}

void gguf_write_scalar(struct gguf_write *w, const char *key, enum model_file_type type,
                       const void *value)
{
    model_file_put_scalar(meta(w), key, type, value);
}

void gguf_write_u32(struct gguf_write *w, const char *key, uint32_t v)
{
    model_file_put_u32(meta(w), key, v);
}

void gguf_write_f32(struct gguf_write *w, const char *key, float v)
{
    model_file_put_f32(meta(w), key, v);
}

void gguf_write_bool(struct gguf_write *w, const char *key, bool v)
{
    model_file_put_bool(meta(w), key, v);
}

void gguf_write_str(struct gguf_write *w, const char *key, const char *s, size_t n)
{
    model_file_put_str(meta(w), key, s, n);
}

void gguf_write_array(struct gguf_write *w, const char *key, enum model_file_type elem,
                      const void *v, size_t n)
{
    model_file_put_array(meta(w), key, elem, v, n);
}

void gguf_write_strings(struct gguf_write *w, const char *key, const struct str *v, size_t n)
{
    model_file_put_strings(meta(w), key, v, n);
}

void gguf_write_copy(struct gguf_write *w, const struct model_file *m)
{
    model_file_put_all(meta(w), m);
}

static bool tensor_size(struct tensor *t)
{
    const struct quant_info *qi = quant_info(t->type);
    uint64_t n = t->dims[0];
    if (!qi || !qi->supported || t->n_dims == 0 || n == 0 || n % qi->block != 0)
        return false;
    n = n / qi->block * qi->block_bytes;
    for (uint32_t d = 1; d < t->n_dims; d++)
        if (t->dims[d] == 0 || __builtin_mul_overflow(n, t->dims[d], &n))
            return false;
    t->n_bytes = n;
    return n < INT64_MAX / 2;
}

void gguf_write_tensor(struct gguf_write *w, const char *name, size_t name_len,
                       enum quant_type type, uint32_t n_dims, const uint64_t *dims)
{
    if (!ready(w))
        return;
    struct tensor t = {.type = type, .n_dims = n_dims};
    if (name_len == 0 || name_len > MAX_TENSOR_NAME || memchr(name, 0, name_len)) {
        err_set(&w->meta->first, SHOAL_EINVAL, "tensor name of %zu bytes", name_len);
        return;
    }
    for (size_t i = 0; i < w->n_tensors; i++)
        if (strlen(w->tensors[i].name) == name_len && !memcmp(w->tensors[i].name, name, name_len)) {
            err_set(&w->meta->first, SHOAL_EINVAL, "two tensors are named %.*s", (int)name_len,
                    name);
            return;
        }
    for (uint32_t d = 0; d < n_dims && d < MODEL_FILE_MAX_DIMS; d++)
        t.dims[d] = dims[d];
    if (n_dims > MODEL_FILE_MAX_DIMS || !tensor_size(&t)) {
        err_set(&w->meta->first, SHOAL_EINVAL, "tensor %.*s has impossible dimensions",
                (int)name_len, name);
        return;
    }
    if (room_make(&w->tensors, &w->cap_tensors, w->n_tensors, sizeof(*w->tensors), 32))
        t.name = mem_strndup(name, name_len);
    if (!t.name) {
        err_set(&w->meta->first, SHOAL_ENOMEM, "out of memory for tensor %.*s", (int)name_len,
                name);
        return;
    }
    w->tensors[w->n_tensors++] = t;
}

static int write_all(struct gguf_write *w, const uint8_t *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t k = write(w->fd, p, n < (1u << 30) ? n : 1u << 30);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_set(e, SHOAL_EIO, "cannot write %s (%llu bytes in all): %s", w->path,
                           (unsigned long long)w->total,
                           k < 0 ? strerror(errno) : "the system wrote nothing");
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int flush(struct gguf_write *w, struct err *e)
{
    int rc = write_all(w, w->out, w->n_out, e);
    w->n_out = 0;
    return rc;
}

static int put(struct gguf_write *w, const void *p, size_t n, struct err *e)
{
    w->position += n;
    if (w->n_out + n > OUT_BYTES) {
        int rc = flush(w, e);
        if (rc < 0)
            return rc;
    }
    if (n >= OUT_BYTES)
        return write_all(w, p, n, e);
    if (n > 0)
        memcpy(w->out + w->n_out, p, n);
    w->n_out += n;
    return 0;
}

static uint64_t aligned(const struct gguf_write *w, uint64_t n)
{
    return (n + w->alignment - 1) & ~(uint64_t)(w->alignment - 1);
}

static int pad(struct gguf_write *w, struct err *e)
{
    static const uint8_t zeros[256];
    uint64_t left = aligned(w, w->position) - w->position;
    while (left > 0) {
        size_t n = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
        int rc = put(w, zeros, n, e);
        if (rc < 0)
            return rc;
        left -= n;
    }
    return 0;
}

/* The alignment that the metadata asks for, if it does. */
static int choose_alignment(struct gguf_write *w, struct err *e)
{
    static const char key[] = "general.alignment";
    const struct model_file_value *value = model_file_find(w->meta, key);
    uint32_t v = 0;

    w->alignment = DEFAULT_ALIGNMENT;
    if (!value)
        return 0;
    if (value->type == MODEL_FILE_U32)
        memcpy(&v, value->data, sizeof(v));
    if (v < 8 || v > 65536 || (v & (v - 1)) != 0)
        return err_set(e, SHOAL_EINVAL, "%s must be a u32, a power of two from 8 to 65536", key);
    w->alignment = v;
    return 0;
}

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof(v));
}

static void put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof(v));
}

static void put_str(struct buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    buf_put(b, s, n);
}

static void put_metadata(const struct gguf_write *w, struct buf *h)
{
    buf_puts(h, "GGUF");
    put_u32(h, VERSION);
    put_u64(h, w->n_tensors);
    put_u64(h, w->meta->n_values);
    for (size_t i = 0; i < w->meta->n_values; i++) {
        const struct model_file_value *v = &w->meta->values[i];
        put_str(h, v->key.p, v->key.n);
        put_u32(h, v->type);
        if (v->type == MODEL_FILE_ARRAY) {
            put_u32(h, v->elem_type);
            put_u64(h, v->n_elems);
        } else if (v->type == MODEL_FILE_STRING) {
            put_u64(h, v->n_bytes);
        }
        buf_put(h, v->data, v->n_bytes);
    }
}

static int make_header(struct gguf_write *w, struct buf *h, struct err *e)
{
    put_metadata(w, h);
    uint64_t offset = 0;
    for (size_t i = 0; i < w->n_tensors; i++) {
        struct tensor *t = &w->tensors[i];
        t->offset = offset;
        put_str(h, t->name, strlen(t->name));
        put_u32(h, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++)
            put_u64(h, t->dims[d]);
        put_u32(h, t->type);
        put_u64(h, t->offset);
        offset = aligned(w, offset + t->n_bytes);
        if (offset > INT64_MAX / 2)
            return err_set(e, SHOAL_ELIMIT, "%s would be too large", w->path);
    }
    if (h->rc < 0)
        return err_set(e, h->rc, "header of %s: %s", w->path, err_text(h->rc));
    w->data_offset = aligned(w, h->len);
    w->total = w->data_offset + offset;
    return 0;
}

int gguf_write_begin(struct gguf_write *w, struct err *e)
{
    struct buf header;
    if (!ready(w)) {
        if (e)
            *e = w->meta->first;
        return w->meta->first.code;
    }
    buf_init(&header, MAX_HEADER_BYTES);
    int rc = choose_alignment(w, e);
    if (rc == 0)
        rc = make_header(w, &header, e);
    if (rc < 0)
        goto out;
    w->progress = PROGRESS_DATA;
    /* Not every file system can reserve space; only "no space" is an error. */
    if (fallocate(w->fd, 0, 0, (off_t)w->total) < 0 && (errno == ENOSPC || errno == EFBIG)) {
        rc = err_set(e, SHOAL_EIO, "cannot write %s (%llu bytes in all): %s", w->path,
                     (unsigned long long)w->total, strerror(errno));
        goto out;
    }
    rc = put(w, header.data, header.len, e);
    if (rc == 0)
        rc = pad(w, e);
out:
    buf_fini(&header);
    return rc;
}

uint64_t gguf_write_size(const struct gguf_write *w)
{
    return w->total;
}

int gguf_write_data(struct gguf_write *w, const void *p, size_t n, struct err *e)
{
    if (w->progress != PROGRESS_DATA || w->at_tensor >= w->n_tensors)
        return err_set(e, SHOAL_EINTERNAL, "%s: data without a tensor", w->path);
    const struct tensor *t = &w->tensors[w->at_tensor];
    if (n > t->n_bytes - w->at_byte)
        return err_set(e, SHOAL_EINTERNAL, "too much data for tensor %s", t->name);
    int rc = put(w, p, n, e);
    w->at_byte += n;
    if (rc == 0 && w->at_byte == t->n_bytes) {
        w->at_tensor++;
        w->at_byte = 0;
        rc = pad(w, e);
    }
    return rc;
}

/* Makes the rename durable. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof(folder))
        return;
    if (!slash)
        memcpy(folder, ".", 2);
    else if (n == 0)
        memcpy(folder, "/", 2);
    else
        snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* some file systems refuse it; the file itself is safe */
        close(fd);
    }
}

int gguf_write_finish(struct gguf_write *w, struct err *e)
{
    if (w->progress != PROGRESS_DATA || w->at_tensor != w->n_tensors)
        return err_set(e, SHOAL_EINTERNAL, "%s: %zu of %zu tensors have data", w->path,
                       w->at_tensor, w->n_tensors);
    int rc = flush(w, e);
    if (rc < 0)
        return rc;
    if (fsync(w->fd) < 0)
        return err_set(e, SHOAL_EIO, "cannot write %s: %s", w->path, strerror(errno));
    int closed = close(w->fd);
    w->fd = -1;
    if (closed < 0 || rename(w->temp, w->path) < 0)
        return err_set(e, SHOAL_EIO, "cannot write %s: %s", w->path, strerror(errno));
    w->temp_exists = false;
    w->progress = PROGRESS_DONE;
    sync_folder(w->path);
    return 0;
}
