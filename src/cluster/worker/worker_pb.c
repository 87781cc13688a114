/* worker_pb.c - see worker_pb.h. */
#include "cluster/worker/worker_pb.h"

#include <math.h>
#include <string.h>

#include <shoal/worker/v1/worker.pb-c.h>

#include "base/utf8.h"
#include "wire/pb.h"

#define N_CPUS (sizeof(((struct registry_apart_opts *)0)->cpus) / sizeof(uint64_t))
#define ALL_KINDS ((unsigned)SHOAL_KIND_SPEAK * 2 - 1)

int worker_pb_put_start(struct buf *out, const struct worker_start *s)
{
    Shoal__Worker__V1__Start m = SHOAL__WORKER__V1__START__INIT;
    uint64_t cpus[N_CPUS];
    memcpy(cpus, s->spec.apart_opts.cpus, sizeof(cpus));
    m.name = pb_text(s->name);
    m.path = pb_text(s->path);
    m.cache_dir = pb_text(s->cache_dir);
    m.has_cache_dir = s->cache_dir != NULL;
    m.n_ctx = s->spec.n_ctx;
    m.max_tasks = s->spec.max_tasks;
    m.max_queue = s->spec.max_queue;
    m.n_threads = s->spec.n_threads;
    m.kv_bytes = s->spec.kv_bytes;
    m.kv_q8 = s->spec.kv_q8;
    m.int8 = s->spec.int8;
    m.stream_save_ms = s->spec.stream_save_ms;
    m.stream_ttl_ms = s->spec.stream_ttl_ms;
    m.max_streams = s->spec.max_streams;
    m.key_file = pb_text(s->spec.key_file);
    m.memory_bytes = s->memory_bytes;
    m.address_bytes = s->spec.apart_opts.memory_bytes;
    m.nice = s->spec.apart_opts.nice;
    m.cpus = cpus;
    m.n_cpus = N_CPUS;
    m.n_links = s->n_links;
    m.parent = s->parent;
    m.log_level = s->log_level;
    m.log_format = s->log_format;
    return pb_put(out, &m.base);
}

int worker_pb_read_start(struct worker_start *out, struct arena *a, const uint8_t *p, size_t n)
{
    const Shoal__Worker__V1__Start *m = pb_unpack(&shoal__worker__v1__start__descriptor, a, p, n);
    if (!m || a->rc < 0)
        return a->rc < 0 ? a->rc : SHOAL_EFORMAT;
    *out = (struct worker_start){
        .name = m->name,
        .path = m->path,
        .cache_dir = m->has_cache_dir ? m->cache_dir : NULL,
        .spec = {.n_ctx = m->n_ctx,
                 .max_tasks = m->max_tasks,
                 .max_queue = m->max_queue,
                 .n_threads = m->n_threads,
                 .kv_bytes = m->kv_bytes,
                 .kv_q8 = m->kv_q8,
                 .int8 = m->int8,
                 .stream_save_ms = m->stream_save_ms,
                 .stream_ttl_ms = m->stream_ttl_ms,
                 .max_streams = m->max_streams,
                 .key_file = m->key_file[0] ? m->key_file : NULL,
                 .apart_opts = {.memory_bytes = m->address_bytes, .nice = m->nice}},
        .memory_bytes = m->memory_bytes,
        .n_links = m->n_links,
        .parent = m->parent,
        .log_level = (enum log_level)m->log_level,
        .log_format = (enum log_format)m->log_format};
    if (m->n_cpus != N_CPUS)
        return SHOAL_EFORMAT;
    memcpy(out->spec.apart_opts.cpus, m->cpus, N_CPUS * sizeof(uint64_t));
    return 0;
}

int worker_pb_put_state(struct buf *out, const struct worker_state *s)
{
    Shoal__Worker__V1__State m = SHOAL__WORKER__V1__STATE__INIT;
    m.state = s->state;
    m.progress = s->progress;
    m.code = s->code;
    m.error = pb_text(s->error);
    m.kinds = s->info.kinds;
    m.images = s->info.images;
    m.n_ctx = s->info.n_ctx;
    m.bytes = s->info.bytes;
    m.load_ms = s->info.load_ms;
    m.prefill_ns = s->prefill_ns;
    m.token_ns = s->token_ns;
    m.missing = pb_text(s->missing);
    return pb_put(out, &m.base);
}

/* For logs and answers: printable, and not long. */
static const char *clean(char *s)
{
    size_t n = strlen(s);
    bool ok = utf8_valid_prefix(s, n) == n;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f || (!ok && (unsigned char)s[i] >= 0x80))
            s[i] = '?';
    return s;
}

static double cost_of(double ns)
{
    return isfinite(ns) && ns > 0 ? ns : 0;
}

int worker_pb_read_state(struct worker_state *out, struct arena *a, const uint8_t *p, size_t n)
{
    Shoal__Worker__V1__State *m =
        n <= WORKER_PB_MAX_BYTES ? pb_unpack(&shoal__worker__v1__state__descriptor, a, p, n) : NULL;
    if (!m || a->rc < 0)
        return a->rc < 0 ? a->rc : SHOAL_EFORMAT;
    if ((m->state != REGISTRY_LOADING && m->state != REGISTRY_READY &&
         m->state != REGISTRY_FAILED) ||
        (m->state == REGISTRY_READY && (m->kinds & ALL_KINDS) == 0) || m->bytes > SIZE_MAX / 4)
        return SHOAL_EFORMAT;
    *out = (struct worker_state){.state = (enum registry_state)m->state,
                                 .progress = m->progress < 1000 ? m->progress : 1000,
                                 .code = m->code < 0 && m->code > -64 ? m->code : SHOAL_EIO,
                                 .error = clean(m->error),
                                 .missing = clean(m->missing),
                                 .info = {.kinds = m->kinds & ALL_KINDS,
                                          .images = m->images,
                                          .n_ctx = m->n_ctx,
                                          .bytes = m->bytes,
                                          .load_ms = cost_of(m->load_ms)},
                                 .prefill_ns = cost_of(m->prefill_ns),
                                 .token_ns = cost_of(m->token_ns)};
    return 0;
}
