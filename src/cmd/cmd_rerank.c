/* cmd_rerank.c - shoal rerank: sorts documents by relevance to a query. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "wire/json_out.h"

cmd_fn cmd_rerank;

#define MAX_DOCS 100000u

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0,
     "read one document per line from FILE; - means stdin"},
    {"top", 0, OPTS_UINT, "N", "0", 0, MAX_DOCS, "show only the N best; 0: all"},
    {"raw", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print logits instead of scores from 0 to 1"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per line"},
};

static const struct opts_page page = {
    .command = "rerank",
    .arguments = "QUERY [DOCUMENT...]",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Sorts documents by relevance to a query.",
    .details = "Documents are the arguments after the query, or the lines of -f FILE.  A "
               "cross-encoder scores\npairs of query and document; with an embedding model, the "
               "embeddings are compared.",
    .groups = {OPTS_GROUP("Options", defs), &model_opts_embed_group},
    .examples =
        "  shoal rerank \"pump too hot\" \"Check the coolant.\" \"Play jazz.\"\n"
        "  shoal rerank -m ./cross-encoder --top 3 -f passages.txt \"who signs the form\"\n",
};

struct rerank_doc {
    const char *text;
    double score;
    size_t at;
    float *vector;
};

struct work {
    struct rerank_doc *docs; /* docs[n] is the query if embeddings are compared */
    size_t n;
    bool pairs;
    uint32_t n_dims;
};

static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    struct rerank_doc *d = row;
    if (w->pairs) {
        d->score = r->values[0];
        return 0;
    }
    d->vector = mem_zalloc_n(r->n_dims, sizeof(float));
    if (!d->vector)
        return err_set(e, SHOAL_ENOMEM, "vector");
    memcpy(d->vector, r->vector, r->n_dims * sizeof(float));
    w->n_dims = r->n_dims;
    return 0;
}

/* The texts belong to the command, which outlives the request. */
static struct request *make_request(const struct work *w, struct local *l, const struct opts *o,
                                    const struct rerank_doc *d)
{
    struct request *r = flow_take_request(&l->owner);
    struct request_input *input = r ? arena_zalloc(&r->arena, sizeof(*input)) : NULL;
    if (!input) {
        if (r)
            flow_give_request(&l->owner, r);
        return NULL;
    }
    *input = (struct request_input){.text = d->text, .text_bytes = strlen(d->text)};
    r->kind = REQUEST_INFER;
    r->model = opts_text(o, "model");
    r->received_ns = clock_ns();
    r->input_bytes = input->text_bytes;
    r->infer = (struct request_infer){.kind = w->pairs ? SHOAL_KIND_RERANK : SHOAL_KIND_EMBED,
                                      .inputs = input,
                                      .n_inputs = 1,
                                      .query = w->pairs ? o->args[0] : NULL,
                                      .raw = w->pairs && opts_flag(o, "raw")};
    return r;
}

static int score(struct work *w, struct local *l, const struct opts *o, struct err *e)
{
    struct local_pipe pipe;
    int rc = 0;
    local_pipe_init(&pipe, l, -1, take, w);
    for (size_t i = 0; rc == 0 && i < w->n + !w->pairs; i++) {
        struct request *r = make_request(w, l, o, &w->docs[i]);
        rc = r ? local_pipe_put(&pipe, r, &w->docs[i], e)
               : err_set(e, SHOAL_ENOMEM, "out of memory");
    }
    if (rc == 0)
        rc = local_pipe_drain(&pipe, e);
    local_pipe_fini(&pipe);
    for (size_t i = 0; rc == 0 && !w->pairs && i < w->n; i++)
        for (uint32_t k = 0; k < w->n_dims; k++)
            w->docs[i].score += (double)w->docs[i].vector[k] * (double)w->docs[w->n].vector[k];
    return rc;
}

static int best_first(const void *x, const void *y)
{
    const struct rerank_doc *a = x, *b = y;
    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

static int print(const struct opts *o, struct work *w)
{
    struct buf b;
    size_t top = opts_uint(o, "top");
    qsort(w->docs, w->n, sizeof(*w->docs), best_first);
    buf_init(&b, (size_t)1 << 30);
    for (size_t i = 0; i < w->n && (top == 0 || i < top); i++) {
        const struct rerank_doc *d = &w->docs[i];
        if (!opts_flag(o, "json")) {
            buf_printf(&b, "%.4f  %s\n", d->score, d->text);
            continue;
        }
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "model", opts_text(o, "model"));
        json_out_member_uint(&j, "index", d->at);
        json_out_member_num(&j, "score", d->score);
        json_out_member_str(&j, "text", d->text);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    }
    return cmd_print_end(o->page, &b);
}

/* Reads arguments, or lines of the file, which is split in place. */
static int read_docs(const struct opts *o, struct work *w, struct buf *file)
{
    struct err e = {0};
    const char *path = opts_text(o, "file");
    size_t n = o->n_args - 1;
    if (path && n > 0)
        return opts_usage(o->page, "give either documents or a file, not both");
    if (!path && n == 0)
        return opts_usage(o->page, "no documents: pass some, or use -f FILE");
    if (path && file_read(path, file, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    for (const char *p = buf_str(file); path && *p; p++)
        n += *p == '\n';
    if (n + 1 > MAX_DOCS)
        return cmd_fail(o->page, "more than %u documents", MAX_DOCS);
    w->docs = mem_zalloc_n(n + 2, sizeof(*w->docs));
    if (!w->docs)
        return cmd_fail(o->page, "out of memory");
    for (size_t i = 1; i < o->n_args; i++)
        w->docs[w->n++].text = o->args[i];
    char *save = NULL;
    for (char *line = path && file->data ? strtok_r(file->data, "\r\n", &save) : NULL; line;
         line = strtok_r(NULL, "\r\n", &save))
        w->docs[w->n++].text = line;
    for (size_t i = 0; i < w->n; i++)
        w->docs[i].at = i;
    w->docs[w->n].text = o->args[0];
    return CMD_OK;
}

int cmd_rerank(int argc, const char *const *argv)
{
    struct opts o;
    struct work w = {0};
    struct buf file;
    struct shoal_engine *engine = NULL;
    struct model_name name = {0};
    struct local l = {.opened = false};
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    buf_init(&file, (size_t)1 << 30);
    rc = read_docs(&o, &w, &file);
    int interrupt_fd = term_catch_interrupt();
    if (rc == CMD_OK)
        rc = model_opts_specialist_open(&o, interrupt_fd, &engine, &name);
    term_release_interrupt(interrupt_fd);
    if (rc == CMD_OK &&
        (local_open(&l, &e) < 0 || local_lend(&l, opts_text(&o, "model"), NULL, engine, &e) < 0))
        rc = cmd_fail(&page, "%s", e.msg);
    if (rc == CMD_OK) {
        shoal_engine_info(engine, &info);
        w.pairs = (info.kinds & SHOAL_KIND_RERANK) != 0;
        rc = score(&w, &l, &o, &e) < 0 ? cmd_fail(&page, "%s", e.msg) : print(&o, &w);
    }
    for (size_t i = 0; w.docs && i <= w.n; i++)
        mem_free(w.docs[i].vector);
    mem_free(w.docs);
    buf_fini(&file);
    local_close(&l);
    shoal_engine_close(engine);
    model_name_fini(&name);
    opts_fini(&o);
    return rc;
}
