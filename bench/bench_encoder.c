/* bench_encoder.c - our encoder behind bench/PROTOCOL.md, with the operations for embeddings only:
 * hello, load, embed, quit.  The runtime is left out, as on the peers' side. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "model/encoder.h"
#include "model/heads.h"
#include "format/model_open.h"

enum { MAX_TOKENS = 4096, MAX_SEQS = 256, MAX_TIMES = 10000 };

struct engine {
    struct model_file *g;
    struct encoder *d;
    struct heads *h;
    int32_t ids[MAX_TOKENS];
    struct encoder_seq seqs[MAX_SEQS];
    uint32_t n_seqs;
};

static double number(const cJSON *req, const char *key, double missing)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(req, key);
    return cJSON_IsNumber(v) ? v->valuedouble : missing;
}

static void unload(struct engine *e)
{
    heads_destroy(e->h);
    encoder_destroy(e->d);
    model_file_close(e->g);
    *e = (struct engine){0};
}

static int load(struct engine *e, const cJSON *req, struct err *err)
{
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(req, "model"));
    const struct encoder_opts o = {.n_threads = (uint32_t)number(req, "threads", 1),
                                   .max_tokens = MAX_TOKENS,
                                   .max_seqs = MAX_SEQS,
                                   .int8 = number(req, "int8", 1) != 0};
    unload(e);
    int rc = path ? model_open(&e->g, path, err) : err_set(err, SHOAL_EINVAL, "model is missing");
    if (rc == 0)
        rc = encoder_create(&e->d, e->g, path, &o, err);
    return rc < 0 ? rc : heads_open(&e->h, e->g, e->d, err);
}

/* Reads the request's "tokens": a list of lists. */
static int read_tokens(struct engine *e, const cJSON *req, struct err *err)
{
    const uint32_t n_vocab = encoder_config(e->d)->n_vocab, n_ctx = encoder_config(e->d)->n_ctx;
    uint32_t n = 0;
    const cJSON *list;
    e->n_seqs = 0;
    cJSON_ArrayForEach(list, cJSON_GetObjectItemCaseSensitive(req, "tokens"))
    {
        const cJSON *id;
        const uint32_t first = n;
        cJSON_ArrayForEach(id, list)
        {
            if (n == MAX_TOKENS || !cJSON_IsNumber(id) || id->valueint < 0 ||
                (uint32_t)id->valueint >= n_vocab)
                return err_set(err, SHOAL_EINVAL, "tokens");
            e->ids[n++] = id->valueint;
        }
        if (n == first || n - first > n_ctx || e->n_seqs == MAX_SEQS)
            return err_set(err, SHOAL_EINVAL, "sequences");
        e->seqs[e->n_seqs++] = (struct encoder_seq){.tokens = e->ids + first, .n = n - first};
    }
    return e->n_seqs ? 0 : err_set(err, SHOAL_EINVAL, "tokens is missing or empty");
}

/* Times n passes over all sequences, including their embeddings. */
static int embed(struct engine *e, const cJSON *req, cJSON *reply, struct err *err)
{
    static float vector[65536];
    int rc = e->d ? read_tokens(e, req, err) : err_set(err, SHOAL_EINVAL, "no model is loaded");
    double n = number(req, "n", 1);
    cJSON *times = rc == 0 ? cJSON_AddArrayToObject(reply, "times_ms") : NULL;
    for (int i = 0; times && i < n && i < MAX_TIMES; i++) {
        uint64_t t0 = clock_ns();
        encoder_forward(e->d, e->seqs, e->n_seqs);
        for (uint32_t s = 0; s < e->n_seqs; s++)
            heads_vector(e->h, e->d, s, 0, vector);
        cJSON_AddItemToArray(times, cJSON_CreateNumber((double)(clock_ns() - t0) * 1e-6));
    }
    return rc;
}

int main(void)
{
    static struct engine e;
    static char line[1 << 20];
    bool stop = false;
    while (!stop && fgets(line, sizeof(line), stdin)) {
        struct err err = {0};
        cJSON *req = cJSON_Parse(line), *reply = cJSON_CreateObject();
        const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(req, "op"));
        int rc = 0;
        cJSON_AddNumberToObject(reply, "id", number(req, "id", 0));
        if (op && strcmp(op, "hello") == 0) {
            cJSON_AddStringToObject(reply, "engine", "shoal");
            cJSON_AddStringToObject(reply, "kernels", kern_select(NULL, NULL)->name);
        } else if (op && strcmp(op, "load") == 0) {
            rc = load(&e, req, &err);
        } else if (op && strcmp(op, "embed") == 0) {
            rc = embed(&e, req, reply, &err);
        } else if (op && strcmp(op, "quit") == 0) {
            stop = true;
        } else {
            rc = err_set(&err, SHOAL_EINVAL, "unknown operation");
        }
        cJSON_AddBoolToObject(reply, "ok", rc == 0);
        if (rc < 0)
            cJSON_AddStringToObject(reply, "error", err.msg);
        char *text = cJSON_PrintUnformatted(reply);
        printf("%s\n", text ? text : "{\"ok\":false}");
        fflush(stdout);
        cJSON_free(text);
        cJSON_Delete(reply);
        cJSON_Delete(req);
    }
    unload(&e);
    return 0;
}
