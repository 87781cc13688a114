/* trace_votes.c - see trace_votes.h. */
#include "trace/trace_votes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/state_file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "wire/json_out.h"

#define N_SEEN 4096u /* traces whose votes are remembered: more than servers keep */
#define MAX_LINE 1024u
#define OTHER "other"

struct votes_of {
    char model[TRACE_VOTES_NAME];
    uint64_t n[2]; /* down, up */
};

struct trace_votes {
    pthread_mutex_t lock;
    char *file;
    size_t max_bytes;
    struct votes_of models[TRACE_VOTES_MODELS + 1]; /* the last: all others */
    uint32_t n_models;
    uint64_t seen[N_SEEN]; /* hashes of trace ids; 0: free */
    uint32_t n_seen;
};

int trace_votes_create(struct trace_votes **out, const char *file, size_t max_bytes, struct err *e)
{
    struct trace_votes *v = mem_zalloc(sizeof(*v));
    char *copy = file ? mem_strdup(file) : NULL;
    *out = NULL;
    if (!v || (file && !copy)) {
        mem_free(v);
        mem_free(copy);
        return err_set(e, SHOAL_ENOMEM, "out of memory for feedback");
    }
    pthread_mutex_init(&v->lock, NULL);
    v->file = copy;
    v->max_bytes = max_bytes;
    *out = v;
    return 0;
}

void trace_votes_destroy(struct trace_votes *v)
{
    if (!v)
        return;
    pthread_mutex_destroy(&v->lock);
    mem_free(v->file);
    mem_free(v);
}

static bool is_new(struct trace_votes *v, const char *trace_id)
{
    const uint64_t h = hash_bytes(trace_id, strlen(trace_id), 0) | 1;
    for (uint32_t i = 0; i < N_SEEN; i++)
        if (v->seen[i] == h)
            return false;
    v->seen[v->n_seen++ % N_SEEN] = h;
    return true;
}

static struct votes_of *votes_of(struct trace_votes *v, const char *model)
{
    for (uint32_t i = 0; i < v->n_models; i++)
        if (strncmp(v->models[i].model, model, TRACE_VOTES_NAME - 1) == 0)
            return &v->models[i];
    if (v->n_models > TRACE_VOTES_MODELS)
        return &v->models[TRACE_VOTES_MODELS];
    struct votes_of *to = &v->models[v->n_models++];
    snprintf(to->model, sizeof(to->model), "%s",
             to == &v->models[TRACE_VOTES_MODELS] ? OTHER : model);
    return to;
}

static void put_line(struct buf *b, const struct trace_vote *x)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_uint(&j, "unix_ms", x->unix_ms);
    json_out_member_str(&j, "trace_id", x->trace_id);
    json_out_member_str(&j, "request", x->request);
    json_out_member_str(&j, "model", x->model);
    json_out_member_str(&j, "rating", x->up ? "up" : "down");
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* A full file becomes FILE.1. */
static int write_line(struct trace_votes *v, const struct buf *line, struct err *e)
{
    char before[4096];
    struct stat st;
    if (stat(v->file, &st) == 0 && (uint64_t)st.st_size + line->len > v->max_bytes &&
        (size_t)snprintf(before, sizeof(before), "%s.1", v->file) < sizeof(before))
        (void)!rename(v->file, before);
    state_file_folders(v->file);
    const int fd = open(v->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool ok = fd >= 0 && write(fd, line->data, line->len) == (ssize_t)line->len;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return ok ? 0 : err_set(e, SHOAL_EIO, "%s: %s", v->file, strerror(why));
}

int trace_votes_add(struct trace_votes *v, const struct trace_vote *x, struct err *e)
{
    struct buf line;
    int rc = 0;
    buf_init(&line, MAX_LINE);
    put_line(&line, x);
    pthread_mutex_lock(&v->lock);
    const bool counts = is_new(v, x->trace_id);
    if (counts) {
        votes_of(v, x->model)->n[x->up]++;
        rc = line.rc < 0 ? err_set(e, line.rc, "the vote is too long") : 0;
        if (rc == 0 && v->file)
            rc = write_line(v, &line, e);
    }
    pthread_mutex_unlock(&v->lock);
    buf_fini(&line);
    return rc < 0 ? rc : counts;
}

void trace_votes_each(struct trace_votes *v,
                      void (*fn)(void *ctx, const char *model, uint64_t up, uint64_t down),
                      void *ctx)
{
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->n_models; i++)
        fn(ctx, v->models[i].model, v->models[i].n[1], v->models[i].n[0]);
    pthread_mutex_unlock(&v->lock);
}
