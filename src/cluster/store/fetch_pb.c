/* fetch_pb.c - see fetch_pb.h. */
#include "cluster/store/fetch_pb.h"

#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "base/arena.h"
#include "base/rd.h"
#include "depot/store/model_manifest.h"
#include "wire/pb.h"

#define MAX_FIELDS (8u * MODEL_MANIFEST_MAX_FILES)
#define ARENA_BYTES ((size_t)16 << 20)
#define DATA_TAG 0x12u /* field 2, bytes */

typedef Shoal__Node__V1__FetchRequest pb_request;
typedef Shoal__Node__V1__FetchChunk pb_chunk;
typedef Shoal__Node__V1__FetchManifest pb_manifest;
typedef Shoal__Node__V1__FetchFile pb_file;

int fetch_pb_put_request(struct buf *out, const struct fetch_request *r)
{
    pb_request m = SHOAL__NODE__V1__FETCH_REQUEST__INIT;
    m.model = pb_bytes(r->model, SHA256_BYTES);
    m.manifest = r->manifest;
    m.file = r->file;
    m.offset = r->offset;
    return pb_put(out, &m.base);
}

int fetch_pb_read_request(struct fetch_request *out, const uint8_t *p, size_t n, struct err *e)
{
    struct arena a;
    arena_init(&a, 4096);
    const pb_request *m = n <= FETCH_PB_MAX_REQUEST
                              ? pb_unpack(&shoal__node__v1__fetch_request__descriptor, &a, p, n)
                              : NULL;
    int rc = 0;
    *out = (struct fetch_request){0};
    if (!m || m->model.len != SHA256_BYTES) {
        rc = err_set(e, SHOAL_EFORMAT, "this is not a request for a model: it needs its SHA-256");
    } else {
        memcpy(out->model, m->model.data, SHA256_BYTES);
        out->manifest = m->manifest;
        out->file = m->file;
        out->offset = m->offset;
    }
    arena_fini(&a);
    return rc;
}

static int put_manifest(struct buf *out, const struct model_manifest *m, struct arena *a)
{
    pb_manifest to = SHOAL__NODE__V1__FETCH_MANIFEST__INIT;
    pb_chunk chunk = SHOAL__NODE__V1__FETCH_CHUNK__INIT;
    void **pointers;
    pb_file *files = pb_list(a, m->n_files, sizeof(*files), &pointers);
    if (!files)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < m->n_files; i++) {
        shoal__node__v1__fetch_file__init(&files[i]);
        files[i].name = pb_text(m->files[i].name);
        files[i].bytes = m->files[i].bytes;
        files[i].sha256 = pb_bytes(m->files[i].sum, SHA256_BYTES);
    }
    to.folder = m->folder;
    to.open = pb_text(m->open);
    to.files = (pb_file **)pointers;
    to.n_files = m->n_files;
    to.signature = pb_bytes(m->signature, m->n_signature);
    chunk.kind_case = SHOAL__NODE__V1__FETCH_CHUNK__KIND_MANIFEST;
    chunk.manifest = &to;
    return pb_put(out, &chunk.base);
}

int fetch_pb_put_manifest(struct buf *out, const struct model_manifest *m)
{
    struct arena a;
    arena_init(&a, ARENA_BYTES);
    int rc = put_manifest(out, m, &a);
    arena_fini(&a);
    return rc;
}

/* Encoded by hand: it is one field, and the bytes are copied once. */
int fetch_pb_put_data(struct buf *out, const void *p, size_t n)
{
    uint8_t head[11] = {DATA_TAG};
    size_t at = 1;
    for (uint64_t v = n;; v >>= 7) {
        head[at++] = (uint8_t)((v & 127u) | (v > 127u ? 128u : 0u));
        if (v <= 127u)
            break;
    }
    buf_put(out, head, at);
    buf_put(out, p, n);
    return out->rc;
}

static int read_manifest(struct model_manifest *m, const pb_manifest *from,
                         const uint8_t model[SHA256_BYTES], struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < from->n_files && rc == 0; i++) {
        const pb_file *f = from->files[i];
        rc = f->sha256.len == SHA256_BYTES
                 ? model_manifest_add(m, f->name, f->bytes, f->sha256.data, e)
                 : err_set(e, SHOAL_EFORMAT, "manifest: a file without its SHA-256");
    }
    if (rc == 0)
        model_manifest_set_signature(m, from->signature.data, from->signature.len);
    return rc < 0 ? rc : model_manifest_finish(m, from->folder, from->open, model, e);
}

/* The data of a chunk that has no other field, without decoding it. */
static bool read_data(struct fetch_chunk *out, const uint8_t *p, size_t n)
{
    uint64_t len = 0;
    size_t at = 1;
    if (n < 2 || p[0] != DATA_TAG)
        return false;
    for (unsigned shift = 0; at < n && shift < 63; shift += 7) {
        uint8_t byte = p[at++];
        len |= (uint64_t)(byte & 127u) << shift;
        if (!(byte & 128u))
            break;
    }
    if (len != n - at)
        return false;
    out->data = p + at;
    out->n_data = n - at;
    return true;
}

int fetch_pb_read_chunk(struct fetch_chunk *out, struct model_manifest *m,
                        const uint8_t model[SHA256_BYTES], const uint8_t *p, size_t n,
                        struct err *e)
{
    const ProtobufCMessageDescriptor *d = &shoal__node__v1__fetch_chunk__descriptor;
    struct arena a;
    char path[64];
    *out = (struct fetch_chunk){0};
    if (read_data(out, p, n))
        return 0;
    if (n > FETCH_PB_MAX_CHUNK)
        return err_set(e, SHOAL_ELIMIT, "a chunk of %zu bytes", n);
    int rc = pb_check(d, p, n, MAX_FIELDS, path, sizeof(path));
    if (rc < 0)
        return err_set(e, rc, "a chunk of a model is damaged");
    arena_init(&a, ARENA_BYTES);
    const pb_chunk *c = pb_unpack(d, &a, p, n);
    if (!c)
        rc = err_set(e, a.rc < 0 ? a.rc : SHOAL_EFORMAT, "a chunk of a model is damaged");
    else if (c->kind_case == SHOAL__NODE__V1__FETCH_CHUNK__KIND_MANIFEST)
        rc = read_manifest(m, c->manifest, model, e);
    else
        rc = err_set(e, SHOAL_EFORMAT, "a chunk of a model is empty or damaged");
    out->manifest = rc == 0;
    arena_fini(&a);
    return rc;
}
