/* pii_search.c - see pii_search.h. */
#include "cmd/local/pii_search.h"

#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "cmd/cli/exit_code.h"
#include "cmd/local/model_opts.h"
#include "privacy/pii_tags.h"
#include "shoal/shoal.h"

static const struct opts_def defs[] = {
    {"find", 0, OPTS_TEXT, "KINDS", NULL, 0, 0,
     "email,phone,card,iban,ip,id,birth,person,place; default: all but the last two"},
    {"model", 'm', OPTS_TEXT, "MODEL", "entities", 0, 0, "model that finds person and place"},
    {"int8", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "compute with 8-bit weights, whatever the file contains"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,
     "number of threads; 0: chosen for this model and machine"},
    {"kernels", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "use this kernel set (see 'shoal doctor'); default: the best for this CPU"},
    {"no-cache", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not cache tiled weights on disk"},
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "file with the key or the passphrase of an encrypted model"},
};
const struct opts_group pii_search_group = OPTS_GROUP_INIT("Search", defs);

static int read_kinds(struct pii_search *s, const struct opts *o)
{
    const char *p = opts_text(o, "find");
    s->kinds = p ? 0 : PII_BY_RULES;
    while (p && *p) {
        size_t n = strcspn(p, ",");
        enum pii_kind k;
        if (!pii_kind_read(&k, p, n))
            return opts_usage(o->page,
                              "--find: cannot find '%.*s'; it can find email, phone, card, iban, "
                              "ip, id, birth, person and place",
                              (int)n, p);
        s->kinds |= PII_BIT(k);
        p += n + (p[n] == ',');
    }
    return CMD_OK;
}

int pii_search_open(struct pii_search *s, const struct opts *o)
{
    struct model_name name = {0};
    *s = (struct pii_search){0};
    int rc = read_kinds(s, o);
    if (rc == CMD_OK && (s->kinds & PII_BY_MODEL))
        rc = model_opts_specialist_open_as(o, opts_text(o, "model"), -1, &s->engine, &name);
    model_name_fini(&name);
    return rc;
}

void pii_search_close(struct pii_search *s)
{
    shoal_engine_close(s->engine);
    mem_free(s->hits);
    *s = (struct pii_search){0};
}

/* Inserts in order, unless it overlaps another. */
static void put(struct pii_search *s, const struct pii_hit *h)
{
    uint32_t at = s->n;
    while (at > 0 && s->hits[at - 1].start >= h->end)
        at--;
    if (at > 0 && s->hits[at - 1].end > h->start)
        return;
    if (!room_make32(&s->hits, &s->cap, s->n, sizeof(*s->hits), 64)) {
        s->rc = SHOAL_ENOMEM;
        return;
    }
    memmove(s->hits + at + 1, s->hits + at, (s->n - at) * sizeof(*h));
    s->hits[at] = *h;
    s->n++;
}

static void on_hit(void *ctx, const struct pii_hit *h)
{
    put(ctx, h);
}

/* Names in one piece of the text. */
static int tag(struct pii_search *s, const char *text, size_t at, size_t end, struct err *e)
{
    const struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_TAG, .text = text + at, .text_bytes = end - at};
    struct shoal_error why = {0};
    struct shoal_task *task = NULL;
    int rc = shoal_infer_submit(s->engine, &o, &task, &why);
    if (rc < 0)
        return err_set(e, rc, "%s", why.msg);
    (void)shoal_task_wait(task); /* the result has the code */
    const struct shoal_result *r = shoal_task_result(task);
    rc = r ? r->code : SHOAL_EINVAL;
    if (rc < 0)
        rc = err_set(e, rc, "%s", r && r->message ? r->message : "the model does not tag");
    for (uint32_t i = 0; rc == 0 && i < r->n_spans; i++) {
        const struct shoal_span *span = &r->spans[i];
        const struct pii_tag tag = {span->label, at + span->start, at + span->end, span->score};
        struct pii_hit h;
        if (pii_tags_hit(&h, &tag, text, s->kinds))
            put(s, &h);
    }
    shoal_task_free(task);
    return rc;
}

int pii_search_run(struct pii_search *s, const char *text, size_t n, struct err *e)
{
    int rc = 0;
    s->n = 0;
    s->rc = 0;
    pii_find(text, n, s->kinds, on_hit, s);
    for (size_t at = 0, end; s->engine && at < n && rc == 0; at = end) {
        end = pii_tags_piece_end(text, n, at);
        rc = tag(s, text, at, end, e);
    }
    if (rc == 0 && s->rc < 0)
        rc = err_set(e, s->rc, "out of memory");
    return rc;
}
