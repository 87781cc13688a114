/* onnx_tool.c - the ONNX engine on token ids, for tests/conformance/onnx.js.
 *
 *   onnx_tool encode FILE THREADS BATCH      lines of ids in; for each one line per output:
 *                                            "kind floats..." with floats as their bits in hex;
 *                                            every second token is of type 1
 *   onnx_tool generate FILE THREADS N CHUNK  lines of ids in; a line of N greedy tokens each, all
 *                                            sequences running side by side
 *   onnx_tool engine FOLDER TASKS N          lines of ids in; each a task of one engine, of which
 *                                            TASKS may run at once; later lines come when the
 *                                            first task is at work, and go before it.  A line for
 *                                            each: its code and N tokens
 *   onnx_tool threads FILE                   threads of this process before, while and after the
 *                                            file is open
 *   onnx_tool memory FILE                    opens and runs it with one allocation after the other
 *                                            failing; says how many there were
 * Errors go to stderr as one line, exit status 1. */
#include <ctype.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/onnx/onnx_encoder.h"
#include "engine/onnx/onnx_lm.h"
#include "engine/onnx/onnx_session.h"
#include "shoal/shoal.h"

#define MAX_SEQS 64u
#define MAX_IDS 4096u

struct input {
    int32_t ids[MAX_IDS];
    uint32_t n;
};

static int fail(const struct err *e)
{
    fprintf(stderr, "%s: %s\n", err_name(e->code), e->msg);
    return 1;
}

static uint32_t read_inputs(struct input *in)
{
    static char line[1 << 16];
    uint32_t n = 0;
    while (n < MAX_SEQS && fgets(line, sizeof(line), stdin)) {
        char *p = line, *end;
        for (in[n].n = 0; in[n].n < MAX_IDS / 2; p = end) {
            long id = strtol(p, &end, 10);
            if (end == p)
                break;
            in[n].ids[in[n].n++] = (int32_t)id;
        }
        n++;
    }
    return n;
}

static void put_floats(const char *kind, const float *x, size_t n)
{
    printf("%s", kind);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        printf(" %x", bits);
    }
    printf("\n");
}

static uint8_t odd[MAX_IDS];

static int encode(const char *file, const struct input *in, uint32_t n, uint32_t threads,
                  uint32_t batch)
{
    static const char *const kinds[ONNX_ENCODER_N_OUTPUTS] = {"hidden", "token_logits", "logits",
                                                              "sentence", "pooled"};
    struct onnx_encoder_opts o = {.n_threads = threads, .max_batch = batch};
    struct encoder_seq seqs[MAX_SEQS];
    struct onnx_encoder *enc;
    struct err e = {0};
    if (onnx_encoder_open(&enc, file, &o, &e) < 0)
        return fail(&e);
    for (uint32_t i = 0; i < MAX_IDS; i++)
        odd[i] = i & 1;
    for (uint32_t i = 0; i < n; i++)
        seqs[i] = (struct encoder_seq){.tokens = in[i].ids, .types = odd, .n = in[i].n};
    int rc = onnx_encoder_forward(enc, seqs, n, &e);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        for (int k = 0; k < ONNX_ENCODER_N_OUTPUTS; k++) {
            const float *x = onnx_encoder_get(enc, (enum onnx_encoder_output)k, i, 0);
            bool tokens = k == ONNX_ENCODER_HIDDEN || k == ONNX_ENCODER_TOKEN_LOGITS;
            if (x)
                put_floats(kinds[k], x,
                           (size_t)(tokens ? in[i].n : 1) * onnx_encoder_info(enc)->dims[k]);
        }
    onnx_encoder_close(enc);
    return rc < 0 ? fail(&e) : 0;
}

static int32_t likeliest(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return (int32_t)best;
}

static bool once_only(void *ctx, struct lm_pass *pass)
{
    struct lm_pass *left = ctx;
    *pass = *left;
    left->n_runs = 0;
    return pass->n_runs > 0;
}

static void forward(const struct lm *lm, const struct decoder_run *runs, const uint32_t *slots,
                    uint32_t n_runs, int *codes)
{
    struct lm_pass pass = {runs, slots, codes, n_runs};
    lm->ops->passes(lm->impl, once_only, &pass);
}

static int generate(const char *file, struct input *in, uint32_t n, uint32_t threads,
                    uint32_t n_new, uint32_t chunk)
{
    struct onnx_lm_opts o = {.n_threads = threads, .max_tasks = n, .chunk = chunk};
    struct decoder_run runs[MAX_SEQS];
    uint32_t slots[MAX_SEQS], done[MAX_SEQS] = {0}, start[MAX_SEQS];
    int codes[MAX_SEQS] = {0};
    struct lm lm;
    struct err e = {0};
    if (onnx_lm_open(&lm, file, &o, &e) < 0)
        return fail(&e);
    for (uint32_t i = 0; i < n; i++) {
        start[i] = in[i].n;
        slots[i] = n - 1 - i;
    }
    for (bool more = true; more;) {
        uint32_t row = 0;
        more = false;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t left = in[i].n - done[i];
            left = left < lm.info.max_batch ? left : lm.info.max_batch;
            runs[i] = (struct decoder_run){.tokens = in[i].ids + done[i],
                                           .n = left,
                                           .pos0 = done[i],
                                           .n_logits_last = done[i] + left == in[i].n};
        }
        forward(&lm, runs, slots, n, codes);
        for (uint32_t i = 0; i < n; i++) {
            if (codes[i] < 0) {
                printf("%s\n", err_name(codes[i]));
                lm_close(&lm);
                return 1;
            }
            done[i] += runs[i].n;
            if (!runs[i].n_logits_last)
                more = true;
            else if (in[i].n < start[i] + n_new)
                in[i].ids[in[i].n++] = likeliest(lm.ops->logits(lm.impl, row), lm.info.n_vocab);
            row += runs[i].n_logits_last;
            more |= in[i].n < start[i] + n_new;
        }
        for (uint32_t i = 0; i < n && more; i++)
            if (done[i] == in[i].n) { /* a finished one starts over, as a preempted one would */
                lm.ops->release(lm.impl, slots[i]);
                done[i] = 0;
            }
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = start[i]; t < in[i].n; t++)
            printf("%d%c", in[i].ids[t], t + 1 < in[i].n ? ' ' : '\n');
    lm_close(&lm);
    return 0;
}

struct answer {
    struct shoal_task *task;
    int32_t tokens[MAX_IDS];
    _Atomic uint32_t n;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct answer *a = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0 && a->n < MAX_IDS) {
        a->tokens[a->n] = ev->token;
        a->n++;
    }
}

static int engine(const char *folder, const struct input *in, uint32_t n, uint32_t tasks,
                  uint32_t n_new)
{
    static struct answer answers[MAX_SEQS];
    struct shoal_engine_opts o = {.size = sizeof(o), .max_tasks = tasks, .n_threads = 1};
    struct err e = {0};
    struct shoal_engine *en;
    if (shoal_engine_open(&en, folder, &o, &e) < 0)
        return fail(&e);
    for (uint32_t i = 0; i < n; i++) {
        struct shoal_task_opts t = {.size = sizeof(t),
                                    .tokens = in[i].ids,
                                    .n_tokens = in[i].n,
                                    .max_tokens = n_new,
                                    .ignore_end = true,
                                    .priority = (int32_t)i,
                                    .event = on_event,
                                    .event_ctx = &answers[i]};
        if (shoal_task_submit(en, &t, &answers[i].task, &e) < 0)
            return fail(&e);
        while (i == 0 && answers[0].n < 3 && answers[0].n < n_new)
            usleep(50);
    }
    for (uint32_t i = 0; i < n; i++) {
        int code = shoal_task_wait(answers[i].task);
        printf("%s", code < 0 ? err_name(code) : "ok");
        for (uint32_t t = 0; t < answers[i].n; t++)
            printf(" %d", answers[i].tokens[t]);
        printf("\n");
        shoal_task_free(answers[i].task);
    }
    shoal_engine_close(en);
    return 0;
}

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *d; dir && (d = readdir(dir));)
        n += isdigit((unsigned char)d->d_name[0]) != 0;
    if (dir)
        closedir(dir);
    return n;
}

static int threads(const char *file)
{
    struct onnx_session_opts o = {.n_threads = 4};
    struct onnx_session *s;
    struct err e = {0};
    for (int i = 0; i < 3; i++) {
        printf("%d ", count_threads());
        if (onnx_session_open(&s, file, &o, &e) < 0)
            return fail(&e);
        printf("%d ", count_threads());
        onnx_session_close(s);
        printf("%d\n", count_threads());
    }
    return 0;
}

/* Exercises every call once, for any kind of model. */
static int once(const char *file, bool decoder, struct err *e)
{
    static const int32_t tokens[] = {1, 2, 3};
    if (decoder) {
        struct onnx_lm_opts o = {.n_threads = 1, .max_tasks = 1};
        struct decoder_run r = {.tokens = tokens, .n = 3, .n_logits_last = 1};
        uint32_t slot = 0;
        int code = 0;
        struct lm lm;
        int rc = onnx_lm_open(&lm, file, &o, e);
        if (rc < 0)
            return rc;
        forward(&lm, &r, &slot, 1, &code);
        lm_close(&lm);
        return code;
    }
    struct onnx_encoder_opts o = {.n_threads = 1, .max_batch = 2};
    struct encoder_seq seqs[] = {{.tokens = tokens, .n = 3}, {.tokens = tokens, .n = 2}};
    struct onnx_encoder *enc;
    int rc = onnx_encoder_open(&enc, file, &o, e);
    if (rc == 0)
        rc = onnx_encoder_forward(enc, seqs, 2, e);
    onnx_encoder_close(enc);
    return rc;
}

static int memory(const char *file)
{
    struct onnx_session_opts o = {.n_threads = 1};
    struct onnx_session *s;
    struct err e = {0};
    if (onnx_session_open(&s, file, &o, &e) < 0)
        return fail(&e);
    bool decoder = onnx_session_has_past(s);
    onnx_session_close(s);
    for (uint64_t n = 1;; n++) {
        mem_fail_at(n);
        int rc = once(file, decoder, &e);
        mem_fail_at(0);
        if (rc == 0)
            return printf("%llu\n", (unsigned long long)n - 1) < 0;
        if (rc != SHOAL_ENOMEM)
            return fail(&e);
    }
}

int main(int argc, char **argv)
{
    static struct input in[MAX_SEQS];
    if (argc == 3 && strcmp(argv[1], "threads") == 0)
        return threads(argv[2]);
    if (argc == 3 && strcmp(argv[1], "memory") == 0)
        return memory(argv[2]);
    if (argc < 5)
        return 2;
    uint32_t n = read_inputs(in), n_threads = (uint32_t)atoi(argv[3]);
    if (strcmp(argv[1], "encode") == 0)
        return encode(argv[2], in, n, n_threads, (uint32_t)atoi(argv[4]));
    if (strcmp(argv[1], "engine") == 0)
        return engine(argv[2], in, n, n_threads, (uint32_t)atoi(argv[4]));
    if (strcmp(argv[1], "generate") == 0 && argc == 6)
        return generate(argv[2], in, n, n_threads, (uint32_t)atoi(argv[4]),
                        (uint32_t)atoi(argv[5]));
    return 2;
}
