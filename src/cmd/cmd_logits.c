/* cmd_logits.c - shoal logits: logits and probabilities of the next token. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/bare_model.h"
#include "cmd/local/model_opts.h"
#include "wire/json_out.h"

cmd_fn cmd_logits;

#define MAX_TOKENS ((size_t)1 << 24)
#define MAX_OUTPUT_BYTES ((size_t)1 << 30)
#define MAX_TOP 1000u
#define BATCH_ROWS 32u

static const struct opts_def defs[] = {
    {"tokens", 0, OPTS_TEXT, "IDS", NULL, 0, 0, "the input as token ids: 1,2,3"},
    {"text", 0, OPTS_TEXT, "TEXT", NULL, 0, 0, "the input as text"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the input from FILE; - means stdin"},
    {"special", 0, OPTS_FLAG, NULL, NULL, 0, 0, "parse special tokens in the text"},
    {"no-bos", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "do not add BOS and EOS, even if the model requires them"},
    {"top", 'k', OPTS_UINT, "N", "10", 1, MAX_TOP, "show the N most likely tokens"},
    {"all", 0, OPTS_FLAG, NULL, NULL, 0, 0, "show all tokens of the vocabulary, ordered by id"},
    {"every", 0, OPTS_FLAG, NULL, NULL, 0, 0, "show every position, not only the last"},
    {"out", 'o', OPTS_TEXT, "FILE", NULL, 0, 0,
     "write rows of 32-bit floats (little-endian) to FILE"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "logits",
    .arguments = "",
    .summary = "Shows logits and probabilities of the next token.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_group},
    .examples = "  shoal logits -m model.gguf --text \"The capital of France is\"\n"
                "  shoal logits -m model.gguf --tokens 1,15043,3186 --top 3 --every --json\n"
                "  shoal logits -m model.gguf -f text.txt --every --out logits.f32\n",
};

struct top {
    int32_t token;
    float logit;
};

struct logits_job {
    const struct opts *o;
    struct bare_model m;
    struct tok_ids ids;
    int interrupt_fd;
    FILE *file;
    struct buf b;
    struct json_out j;
    struct top *top;
    uint32_t n_rows;
};

static int read_input(struct logits_job *job)
{
    const struct opts *o = job->o;
    const char *ids = opts_text(o, "tokens"), *text = opts_text(o, "text");
    const char *file = opts_text(o, "file");
    struct err e = {0};
    struct buf input = {0};
    if ((ids != NULL) + (text != NULL) + (file != NULL) > 1)
        return opts_usage(o->page, "use exactly one of --tokens, --text and --file");
    if (ids) {
        int rc = cmd_parse_ids(ids, strlen(ids), &job->ids.ids, &job->ids.n, &e);
        return rc < 0 ? opts_usage(o->page, "--tokens: %s", e.msg) : CMD_OK;
    }
    int rc = cmd_read_text(o, text, file, &input);
    unsigned flags = (opts_flag(o, "special") ? TOKENIZER_PARSE_SPECIAL : 0u) |
                     (opts_flag(o, "no-bos") ? 0u : TOKENIZER_ADD_SPECIAL);
    if (rc == CMD_OK &&
        tokenizer_encode(job->m.t, &job->ids, buf_str(&input), input.len, flags, &e) < 0)
        rc = cmd_fail(o->page, "%s", e.msg);
    buf_fini(&input);
    return rc;
}

static int check_input(const struct logits_job *job)
{
    uint32_t n_vocab = decoder_config(job->m.d)->n_vocab;
    if (job->ids.n == 0)
        return cmd_fail(job->o->page, "the input is empty");
    if (job->ids.n > job->m.n_ctx)
        return cmd_fail(job->o->page,
                        "the input has %zu tokens, more than the context of %u (see --ctx)",
                        job->ids.n, job->m.n_ctx);
    for (size_t i = 0; i < job->ids.n; i++)
        if ((uint32_t)job->ids.ids[i] >= n_vocab)
            return cmd_fail(job->o->page, "token %d is not in the vocabulary of %u tokens",
                            job->ids.ids[i], n_vocab);
    return CMD_OK;
}

/* Finds the n best of a row, best first; the lower id wins a tie. */
static void find_top(struct top *out, uint32_t n, const float *row, uint32_t n_vocab)
{
    uint32_t have = 0;
    for (uint32_t t = 0; t < n_vocab; t++) {
        if (have == n && !(row[t] > out[n - 1].logit))
            continue;
        uint32_t i = have < n ? have++ : n - 1;
        for (; i > 0 && row[t] > out[i - 1].logit; i--)
            out[i] = out[i - 1];
        out[i] = (struct top){(int32_t)t, row[t]};
    }
}

/* log of the sum of exp, in double. */
static double log_sum(const float *row, uint32_t n)
{
    double max = (double)row[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = (double)row[i] > max ? (double)row[i] : max;
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)row[i] - max);
    /* cppcheck-suppress invalidFunctionArg */
    return max + log(sum);
}

static void put_piece(struct json_out *j, const struct tokenizer *t, int32_t id)
{
    struct str p = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
    json_out_strn(j, p.p, p.n);
}

static void put_row_json(struct logits_job *job, uint32_t position, const float *row,
                         uint32_t n_top)
{
    uint32_t n_vocab = decoder_config(job->m.d)->n_vocab;
    struct json_out *j = &job->j;
    json_out_object(j);
    json_out_member_uint(j, "position", position);
    json_out_member_array(j, n_top ? "top" : "logits");
    double norm = n_top ? log_sum(row, n_vocab) : 0;
    for (uint32_t i = 0; i < n_top; i++) {
        json_out_object(j);
        json_out_member_int(j, "token", job->top[i].token);
        json_out_key(j, "piece");
        put_piece(j, job->m.t, job->top[i].token);
        json_out_member_float(j, "logit", job->top[i].logit);
        json_out_member_num(j, "logprob", (double)job->top[i].logit - norm);
        json_out_object_end(j);
    }
    for (uint32_t i = 0; n_top == 0 && i < n_vocab; i++)
        json_out_float(j, row[i]);
    json_out_array_end(j);
    json_out_object_end(j);
}

static void put_row_text(struct logits_job *job, uint32_t position, const float *row,
                         uint32_t n_top)
{
    uint32_t n_vocab = decoder_config(job->m.d)->n_vocab;
    double norm = log_sum(row, n_vocab);
    struct json_out j = json_out_make(&job->b);
    buf_printf(&job->b, "position %u, after ", position);
    put_piece(&j, job->m.t, job->ids.ids[position]);
    buf_putc(&job->b, '\n');
    for (uint32_t i = 0; i < (n_top ? n_top : n_vocab); i++) {
        struct top t = n_top ? job->top[i] : (struct top){(int32_t)i, row[i]};
        buf_printf(&job->b, "%8d %10.4f %9.4f %%  ", t.token, (double)t.logit,
                   100 * exp((double)t.logit - norm));
        j = json_out_make(&job->b);
        put_piece(&j, job->m.t, t.token);
        buf_putc(&job->b, '\n');
    }
}

static int put_row(struct logits_job *job, uint32_t position, const float *row)
{
    uint32_t n_vocab = decoder_config(job->m.d)->n_vocab;
    job->n_rows++;
    if (job->file) {
        if (fwrite(row, sizeof(*row), n_vocab, job->file) == n_vocab)
            return CMD_OK;
        return cmd_fail(job->o->page, "cannot write %s: %s", opts_text(job->o, "out"),
                        strerror(errno));
    }
    uint32_t n_top = opts_flag(job->o, "all") ? 0 : opts_u32(job->o, "top");
    n_top = n_top < n_vocab ? n_top : n_vocab;
    find_top(job->top, n_top, row, n_top ? n_vocab : 0);
    if (opts_flag(job->o, "json"))
        put_row_json(job, position, row, n_top);
    else
        put_row_text(job, position, row, n_top);
    /* Whole vocabularies at every position would not fit into memory: print row by row. */
    int rc = cmd_print(job->o->page, &job->b);
    buf_clear(&job->b);
    return rc;
}

static int compute(struct logits_job *job)
{
    uint32_t n = (uint32_t)job->ids.n, batch = decoder_max_batch(job->m.d);
    uint32_t rows = decoder_max_logits(job->m.d);
    bool every = opts_flag(job->o, "every");
    int rc = CMD_OK;
    struct term_progress bar;
    term_progress_init(&bar, "computing");
    for (uint32_t at = 0; rc == CMD_OK && at < n;) {
        uint32_t most = every && rows < batch ? rows : batch, k = n - at < most ? n - at : most;
        struct decoder_run run = {.tokens = job->ids.ids + at,
                                  .n = k,
                                  .pos0 = at,
                                  .pages = bare_model_pages(&job->m, 0),
                                  .n_logits_last = every         ? k
                                                   : at + k == n ? 1
                                                                 : 0};
        decoder_forward(job->m.d, &run, 1);
        for (uint32_t i = 0; rc == CMD_OK && i < run.n_logits_last; i++)
            rc = put_row(job, at + k - run.n_logits_last + i, decoder_logits(job->m.d, i));
        at += k;
        term_progress_show(&bar, (double)at / n, NULL);
        if (rc == CMD_OK && term_interrupted(job->interrupt_fd))
            rc = CMD_INTERRUPTED;
    }
    term_progress_end(&bar);
    return rc;
}

static int run(struct logits_job *job)
{
    const char *path = opts_text(job->o, "out");
    uint32_t n_vocab = decoder_config(job->m.d)->n_vocab;
    bool json = opts_flag(job->o, "json");
    if (path && !(job->file = fopen(path, "wbe")))
        return cmd_fail(job->o->page, "cannot write %s: %s", path, strerror(errno));
    job->top = mem_zalloc_n(MAX_TOP, sizeof(*job->top));
    if (!job->top)
        return cmd_fail(job->o->page, "out of memory");
    job->j = json_out_make(&job->b);
    if (json) {
        json_out_object(&job->j);
        json_out_member_uint(&job->j, "n_vocab", n_vocab);
        json_out_member_array(&job->j, "tokens");
        for (size_t i = 0; i < job->ids.n; i++)
            json_out_int(&job->j, job->ids.ids[i]);
        json_out_array_end(&job->j);
        json_out_member_array(&job->j, "positions");
    }
    int rc = compute(job);
    if (job->file && fclose(job->file) != 0 && rc == CMD_OK)
        rc = cmd_fail(job->o->page, "cannot write %s: %s", path, strerror(errno));
    if (rc != CMD_OK)
        return rc;
    if (json) {
        json_out_array_end(&job->j);
        if (path)
            json_out_member_uint(&job->j, "rows", job->n_rows);
        json_out_object_end(&job->j);
        buf_putc(&job->b, '\n');
        return cmd_print(job->o->page, &job->b);
    }
    if (path)
        fprintf(stderr, "wrote %u row%s of %u floats to %s\n", job->n_rows, plural(job->n_rows),
                n_vocab, path);
    return CMD_OK;
}

int cmd_logits(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct logits_job job = {.o = &o, .interrupt_fd = -1};
    tok_ids_init(&job.ids, MAX_TOKENS);
    buf_init(&job.b, MAX_OUTPUT_BYTES);
    if (!opts_text(&o, "model")) {
        rc = opts_usage(&page, "no model given: use -m MODEL");
    } else {
        job.interrupt_fd = term_catch_interrupt();
        struct bare_model_opts mo = bare_model_opts_read(&o, job.interrupt_fd);
        mo.max_batch = mo.max_batch ? mo.max_batch : 128;
        mo.max_logits = mo.max_batch < BATCH_ROWS ? mo.max_batch : BATCH_ROWS;
        rc = bare_model_open(&job.m, &page, &mo);
    }
    if (rc == CMD_OK)
        rc = read_input(&job);
    if (rc == CMD_OK)
        rc = check_input(&job);
    if (rc == CMD_OK)
        rc = run(&job);
    bare_model_close(&job.m);
    term_release_interrupt(job.interrupt_fd);
    tok_ids_fini(&job.ids);
    mem_free(job.top);
    buf_fini(&job.b);
    opts_fini(&o);
    return rc;
}
