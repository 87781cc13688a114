/* cmd_index_ask.c - shoal index ask: an answer from a collection, with citations and a verdict. */
#include <inttypes.h>

#include "cmd/index/index_site.h"
#include "knowledge/citing.h"
#include "wire/json_out.h"

cmd_fn cmd_index_ask;

static const struct opts_def defs[] = {
    {"model", 'm', OPTS_TEXT, "MODEL", NULL, 0, 0,
     "a model that answers in its own words, if the passages support them: a file, a folder, or a "
     "name; default: none"},
    {"top", 'n', OPTS_UINT, "N", "5", 1, CITING_MAX_PASSAGES,
     "number of passages given to the model"},
    {"max-tokens", 0, OPTS_UINT, "N", "256", 1, 4096, "maximum length of the answer"},
    {"temp", 0, OPTS_REAL, "X", "0", 0, 2, "temperature; 0: always the likeliest token"},
    {"seed", 0, OPTS_UINT, "N", "0", 0, 0, "of the sampling"},
    {"by", 0, OPTS_CHOICE, "both|meaning|words", "both", 0, 0, "how to search"},
};

static const struct opts_page page = {
    .command = "index ask",
    .arguments = "COLLECTION QUESTION",
    .min_args = 2,
    .max_args = 2,
    .summary = "Answers a question with the sentence of a collection that answers it.",
    .details =
        "The sentence, where it is from, and how likely it answers: 0 to 1.  If nothing does, the\n"
        "answer is \"not found\" and the exit code is 3.\n"
        "With -m, a model answers from the passages.  Each of its sentences is checked against\n"
        "them: its numbers, names, negations and words.  If one is not supported, the answer is "
        "the\n"
        "passage's sentence.",
    .groups = {OPTS_GROUP("Answer", defs), &index_site_group, &index_site_model_group},
    .examples = "  shoal index ask manuals \"how long is the warranty?\"\n"
                "  shoal index ask manuals --json \"how long is the warranty?\" | jq .score\n"
                "  shoal index ask manuals -m smollm2 \"when does the pump run hot?\"\n",
};

struct asking {
    struct citing citing;
    struct index_site *site;
    bool over;
    int exit_code;
};

static void put_source(struct buf *b, const struct collection_hit *h)
{
    buf_puts(b, h->doc);
    if (h->page)
        buf_printf(b, ", page %u", h->page);
    buf_printf(b, "%s%s", h->heading[0] ? ": " : "", h->heading);
}

/* What the model wrote, if it is not the answer. */
static void put_refused(struct buf *b, const struct citing *x)
{
    for (uint32_t i = 0; i < x->support.n; i++)
        if (!x->support.sentences[i].supported)
            buf_printf(b, "not supported (%s): %.*s\n",
                       support_reason_text(x->support.sentences[i].reason),
                       (int)x->support.sentences[i].n,
                       buf_str(&x->answer) + x->support.sentences[i].at);
}

static void put_text(struct buf *b, struct citing *x)
{
    const struct quoting *q = &x->quoting;
    if (!q->found) {
        buf_puts(b, "not found\n");
        if (q->n_sentences == 0)
            return;
        buf_printf(b, "\nnearest (score %.2f): %s\n  ", q->sentences[0].score,
                   q->sentences[0].text);
        put_source(b, &q->retrieval.hits[q->sentences[0].hit]);
        buf_putc(b, '\n');
        return;
    }
    buf_printf(b, "%s\n\n", citing_answer(x));
    if (!x->written) {
        put_source(b, &q->retrieval.hits[q->sentences[0].hit]);
        buf_printf(b, " (score %.2f)\n", q->sentences[0].score);
        if (x->model_name[0])
            put_refused(b, x);
        return;
    }
    for (uint32_t i = 0; i < x->n_cited; i++)
        for (uint32_t k = 0; k < x->n_passages; k++)
            if (q->retrieval.hits[k].id == x->cited[i]) {
                buf_printf(b, "[%" PRId64 "] ", x->cited[i]);
                put_source(b, &q->retrieval.hits[k]);
                buf_putc(b, '\n');
            }
}

static void on_answered(struct citing *x, const struct failure *f)
{
    struct asking *a = EXECUTOR_OF(x, struct asking, citing);
    const struct opts *o = a->site->o;
    struct buf b;
    a->over = true;
    if (f) {
        a->exit_code = a->site->interrupted ? CMD_INTERRUPTED : cmd_fail(o->page, "%s", f->message);
        return;
    }
    buf_init(&b, (size_t)16 << 20);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        citing_json(&j, x);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        put_text(&b, x);
    }
    a->exit_code = cmd_print(o->page, &b);
    if (a->exit_code == CMD_OK && !x->quoting.found)
        a->exit_code = CMD_NOT_WELL;
    buf_fini(&b);
}

static void cancel_asking(void *ctx)
{
    citing_cancel(&((struct asking *)ctx)->citing);
}

int cmd_index_ask(int argc, const char *const *argv)
{
    struct opts o;
    struct index_site s;
    struct collection_info info = {.model = ""};
    struct asking a = {.site = &s};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = index_site_open(&s, &o);
    a.citing = (struct citing){.quoting = {.retrieval = {.owner = &s.local.owner,
                                                         .collections = s.collections,
                                                         .collection = o.args[0],
                                                         .query = o.args[1]}},
                               .n_given = opts_u32(&o, "top"),
                               .write = opts_text(&o, "model") != NULL,
                               .model = opts_text(&o, "model"),
                               .max_tokens = opts_u32(&o, "max-tokens"),
                               .temperature = (float)opts_real(&o, "temp"),
                               .seed = opts_uint(&o, "seed"),
                               .done = on_answered};
    if (rc == CMD_OK && !retrieval_mode_find(opts_text(&o, "by"), &a.citing.quoting.retrieval.mode))
        rc = CMD_USAGE;
    if (rc == CMD_OK)
        rc = index_site_info(&s, o.args[0], &info);
    if (rc == CMD_OK)
        rc = index_site_lend(&s, info.model);
    if (rc == CMD_OK && a.citing.write)
        rc = index_site_lend(&s, a.citing.model);
    if (rc == CMD_OK) {
        citing_run(&a.citing);
        index_site_run(&s, &a.over, cancel_asking, &a);
        rc = a.exit_code;
        citing_fini(&a.citing);
    }
    index_site_close(&s);
    opts_fini(&o);
    return rc;
}
