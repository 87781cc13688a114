/* cmd_eval_pii.c - shoal eval pii: how much of the personal data in labelled texts is found. */
#include <string.h>

#include "base/clock.h"
#include "base/plural.h"
#include "cmd/cmd.h"
#include "cmd/local/pii_search.h"
#include "eval/eval_rows.h"
#include "wire/json_out.h"

cmd_fn cmd_eval_pii;

static const struct opts_def defs[] = {
    {"wrong", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list missed and false hits"},
    {"limit", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N rows; 0: all"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "eval pii",
    .arguments = "FILE...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Measures how much of the personal data in labelled texts is found.",
    .details = "Each row is a JSON object:\n"
               "  text   the text\n"
               "  spans  [{\"kind\", \"start\", \"end\"}], in bytes; [] means there is nothing\n"
               "A hit is right if kind, start and end are those of a span.  'covered' is the share "
               "of spans\nwhose bytes are all in some hit of any kind: what a mask would hide.  "
               "Kinds that --find\ndoes not name are not counted.",
    .groups = {OPTS_GROUP("Options", defs), &pii_search_group},
    .examples = "  shoal eval pii tests/data/pii/eval.jsonl\n"
                "  shoal eval pii --find person,place --wrong mine.jsonl\n",
};

struct tally {
    uint32_t n, found, right, covered;
};

struct run {
    struct pii_search search;
    struct tally kinds[PII_N_KINDS];
    uint32_t n_rows, n_clean, n_clean_hit; /* clean: nothing is in them */
    size_t bytes;
    uint64_t ns;
    struct buf wrong;
};

struct span {
    enum pii_kind kind;
    size_t start, end;
};

static int read_span(const cJSON *v, const struct eval_row *row, size_t n, struct span *out,
                     struct err *e)
{
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(v, "kind");
    const cJSON *start = cJSON_GetObjectItemCaseSensitive(v, "start");
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(v, "end");
    if (!cJSON_IsString(kind) ||
        !pii_kind_read(&out->kind, kind->valuestring, strlen(kind->valuestring)) ||
        !cJSON_IsNumber(start) || !cJSON_IsNumber(end) || start->valuedouble < 0 ||
        end->valuedouble <= start->valuedouble || end->valuedouble > (double)n)
        return err_set(e, SHOAL_EFORMAT,
                       "%s:%llu: a span needs a kind, and start and end inside the text", row->file,
                       (unsigned long long)row->line);
    out->start = (size_t)start->valuedouble;
    out->end = (size_t)end->valuedouble;
    return 0;
}

/* Whether every byte of the span is in a hit. */
static bool is_covered(const struct pii_search *s, const struct span *x)
{
    size_t at = x->start;
    for (uint32_t i = 0; i < s->n && at < x->end; i++)
        if (s->hits[i].start <= at && s->hits[i].end > at)
            at = s->hits[i].end;
    return at >= x->end;
}

static void note(struct run *x, const char *what, enum pii_kind kind, const char *text,
                 size_t start, size_t end)
{
    buf_printf(&x->wrong, "%-6s %-7s %.*s    in: %s\n", what, pii_kind_name(kind),
               (int)(end - start), text + start, text);
}

static int run_row(struct run *x, const struct eval_row *row, struct err *e)
{
    static const char *const keys[] = {"text", NULL};
    const cJSON *spans = cJSON_GetObjectItemCaseSensitive(row->json, "spans"), *v;
    struct pii_search *s = &x->search;
    bool hit_right[256] = {false};
    const char *text;
    int rc = eval_rows_text(row, keys, &text, e);
    if (rc == 0 && !cJSON_IsArray(spans))
        rc = err_set(e, SHOAL_EFORMAT, "%s:%llu: a row needs 'spans', a list", row->file,
                     (unsigned long long)row->line);
    if (rc < 0)
        return rc;
    size_t n = strlen(text);
    uint64_t t0 = clock_ns();
    rc = pii_search_run(s, text, n, e);
    x->ns += clock_ns() - t0;
    x->bytes += n;
    x->n_rows++;
    cJSON_ArrayForEach(v, spans)
    {
        struct span want;
        if (rc == 0)
            rc = read_span(v, row, n, &want, e);
        if (rc < 0)
            return rc;
        if (!(s->kinds & PII_BIT(want.kind)))
            continue;
        struct tally *t = &x->kinds[want.kind];
        bool right = false;
        for (uint32_t i = 0; i < s->n && i < 256; i++)
            if (s->hits[i].kind == want.kind && s->hits[i].start == want.start &&
                s->hits[i].end == want.end)
                right = hit_right[i] = true;
        t->n++;
        t->right += right;
        t->covered += is_covered(s, &want);
        if (!right)
            note(x, "missed", want.kind, text, want.start, want.end);
    }
    for (uint32_t i = 0; rc == 0 && i < s->n; i++) {
        x->kinds[s->hits[i].kind].found++;
        if (i >= 256 || !hit_right[i])
            note(x, "wrong", s->hits[i].kind, text, s->hits[i].start, s->hits[i].end);
    }
    bool clean = cJSON_GetArraySize(spans) == 0;
    x->n_clean += clean;
    x->n_clean_hit += clean && s->n > 0;
    return rc;
}

static double share(uint32_t part, uint32_t of)
{
    return of ? (double)part / of : 1;
}

static double speed(const struct run *x) /* in MB/s */
{
    return x->ns ? (double)x->bytes * 1e3 / (double)x->ns : 0;
}

static void put_text(struct buf *b, const struct run *x)
{
    buf_printf(b, "%-8s %6s %6s %10s %7s %8s\n", "KIND", "SPANS", "FOUND", "PRECISION", "RECALL",
               "COVERED");
    for (unsigned k = 0; k < PII_N_KINDS; k++) {
        const struct tally *t = &x->kinds[k];
        if (x->search.kinds & PII_BIT(k))
            buf_printf(b, "%-8s %6u %6u %10.3f %7.3f %8.3f\n", pii_kind_name((enum pii_kind)k),
                       t->n, t->found, share(t->right, t->found), share(t->right, t->n),
                       share(t->covered, t->n));
    }
    buf_printf(b, "%u row%s; a hit in %u of %u without personal data; %.1f MB/s\n", x->n_rows,
               plural(x->n_rows), x->n_clean_hit, x->n_clean, speed(x));
}

static void put_number(struct json_out *j, const char *key, double v)
{
    json_out_member_num(j, key, v);
}

static void put_json(struct buf *b, const struct run *x)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_object(&j, "kinds");
    for (unsigned k = 0; k < PII_N_KINDS; k++) {
        const struct tally *t = &x->kinds[k];
        if (!(x->search.kinds & PII_BIT(k)))
            continue;
        json_out_member_object(&j, pii_kind_name((enum pii_kind)k));
        put_number(&j, "spans", t->n);
        put_number(&j, "found", t->found);
        put_number(&j, "precision", share(t->right, t->found));
        put_number(&j, "recall", share(t->right, t->n));
        put_number(&j, "covered", share(t->covered, t->n));
        json_out_object_end(&j);
    }
    json_out_object_end(&j);
    put_number(&j, "rows", x->n_rows);
    put_number(&j, "rows_without", x->n_clean);
    put_number(&j, "rows_without_hit", x->n_clean_hit);
    put_number(&j, "mb_per_s", speed(x));
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

int cmd_eval_pii(int argc, const char *const *argv)
{
    struct opts o;
    struct eval_rows rows = {0};
    struct run x = {.n_rows = 0};
    struct err e = {0};
    struct buf b;
    int exit_code, rc = 0;
    if (!cmd_begin(&o, &page, argc, argv, &exit_code))
        return exit_code;
    buf_init(&b, (size_t)1 << 27);
    buf_init(&x.wrong, (size_t)1 << 26);
    exit_code = pii_search_open(&x.search, &o);
    for (size_t i = 0; exit_code == CMD_OK && rc == 0 && i < o.n_args; i++)
        rc = eval_rows_read(&rows, o.args[i], &e);
    if (rc == 0 && opts_uint(&o, "limit"))
        eval_rows_cut(&rows, opts_uint(&o, "limit"));
    for (size_t i = 0; exit_code == CMD_OK && rc == 0 && i < rows.n; i++)
        rc = run_row(&x, &rows.rows[i], &e);
    if (exit_code == CMD_OK && rc < 0)
        exit_code = cmd_fail(&page, "%s", e.msg);
    if (exit_code == CMD_OK) {
        if (opts_flag(&o, "wrong") && !opts_flag(&o, "json"))
            buf_put(&b, buf_str(&x.wrong), x.wrong.len);
        if (opts_flag(&o, "json"))
            put_json(&b, &x);
        else
            put_text(&b, &x);
        exit_code = cmd_print(&page, &b);
    }
    pii_search_close(&x.search);
    eval_rows_fini(&rows);
    buf_fini(&x.wrong);
    buf_fini(&b);
    opts_fini(&o);
    return exit_code;
}
