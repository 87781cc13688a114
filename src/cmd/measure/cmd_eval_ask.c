/* cmd_eval_ask.c - shoal eval ask: measures the ask flow on texts with known actions. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "eval/eval_rows.h"
#include "eval/quality.h"
#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_open.h"
#include "wire/json_out.h"

cmd_fn cmd_eval_ask;

#define MAX_KINDS 64u

static const struct opts_def defs[] = {
    {"wrong", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list the rows that are not completely correct"},
    {"models", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder of the models; default: $SHOAL_MODELS, ./models, or next to the program"},
    {"table", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "JSON table of words and actions; default: home.json of the models folder"},
    {"home", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "home file (docs/HOME.md); default: a simulated demo home"},
    {"limit", 0, OPTS_UINT, "N", "0", 0, 1000000000, "use only the first N rows; 0: all"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,
     "number of threads; 0: chosen for the models and the machine"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "eval ask",
    .arguments = "FILE...",
    .min_args = 1,
    .max_args = UINT32_MAX,
    .summary = "Measures 'shoal ask' on texts with known actions.",
    .details =
        "Each row is a JSON object:\n"
        "  text     what is said\n"
        "  actions  what must happen, in order: {\"action\", slots...}; [] means nothing\n"
        "           \"ids\" of an action name its things by id, in place of device, room and "
        "machine\n"
        "  rests    in place of actions: the ids of all things that must come to rest at once\n"
        "  or       lists of actions that are as right: other names of the same things (optional)\n"
        "  before   texts said before in the same conversation (optional)\n"
        "  now      the clock, \"2026-11-15T14:05:00\" (optional)\n"
        "  home     name of the table that the row is for (optional)\n"
        "  kind     rows are counted by kind (optional)\n"
        "A row is right if the actions that happen, or would after a confirmation, are these with "
        "these\nslots.  'acted' counts rows where nothing must happen and something does, 'asked' "
        "those where a\nconfirmation is asked for.  An action with a \"result\" must have that "
        "result.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal eval ask tests/data/ask/eval.jsonl\n"
                "  shoal eval ask --wrong --json mine.jsonl\n",
};

struct kind {
    const char *name;
    uint32_t rows, right, nothing, acted, asked; /* nothing: rows where nothing must happen */
};

struct tally {
    struct kind kinds[MAX_KINDS + 1]; /* the last one: all rows */
    uint32_t n_kinds;
    double *latency_ms;
    size_t n_latencies;
    struct buf wrong;
};

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return s ? s : "";
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool one_of(const char *s, const char *const *list)
{
    while (*list && strcmp(*list, s) != 0)
        list++;
    return *list != NULL;
}

static bool happens(const cJSON *action)
{
    static const char *const results[] = {"done",      "sent",    "simulated",
                                          "scheduled", "confirm", NULL};
    return one_of(text_of(action, "result"), results);
}

static bool is_question(const struct home_table *t, const cJSON *action)
{
    const struct home_action *x = home_table_action(t, text_of(action, "action"));
    return x && (x->answer.n > 0 || x->reason);
}

/* "kitchen" and "window", or "kitchen window": the thing is the same. */
static bool same_thing(const cJSON *want, const cJSON *have)
{
    char w[256], h[256];
    const char *wr = text_of(want, "room"), *hr = text_of(have, "room");
    snprintf(w, sizeof(w), "%s%s%s", wr, *wr ? " " : "", text_of(want, "device"));
    snprintf(h, sizeof(h), "%s%s%s", hr, *hr ? " " : "", text_of(have, "device"));
    return strcmp(w, h) == 0;
}

/* A result that a sink or a simulation carried out counts as done. */
static bool same_result(const cJSON *want, const cJSON *have)
{
    static const char *const results[] = {"done", "sent", "simulated", NULL};
    return strcmp(want->string, "result") == 0 && cJSON_IsString(want) &&
           strcmp(want->valuestring, "done") == 0 && one_of(text_of(have, "result"), results);
}

static bool lists_id(const cJSON *ids, const char *id)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, ids)
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, id) == 0)
            return true;
    }
    return false;
}

/* Of the ids of an action, how many there are and how many of them the list has. */
static void count_ids(const cJSON *action, const cJSON *list, int *all, int *listed)
{
    const char *one = text_of(action, "id");
    const cJSON *v;
    *all += *one != '\0';
    *listed += *one && lists_id(list, one);
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(action, "ids"))
    {
        ++*all;
        *listed += cJSON_IsString(v) && lists_id(list, v->valuestring);
    }
}

/* Are the things of the actions exactly those of the list? */
static bool same_ids(const cJSON *ids, const cJSON *first, const cJSON *end)
{
    int all = 0, listed = 0;
    for (; first != end; first = first->next)
        count_ids(first, ids, &all, &listed);
    return all == listed && all == cJSON_GetArraySize(ids);
}

/* Does an action have the slots that it must have, and no others? */
static bool same_action(const cJSON *want, const cJSON *have)
{
    static const char *const thing[] = {"device", "room", "ids", NULL};
    static const char *const other[] = {
        "id",   "ids",    "result",  "unit",    "risk",  "token",  "ask",       "reason", "answer",
        "rest", "except", "unknown", "choices", "state", "things", "simulated", "items",  NULL};
    const cJSON *v, *ids = cJSON_GetObjectItemCaseSensitive(want, "ids");
    if (ids ? !same_ids(ids, have, have->next) : !same_thing(want, have))
        return false;
    cJSON_ArrayForEach(v, want)
    {
        if (!one_of(v->string, thing) && !same_result(v, have) &&
            !cJSON_Compare(v, cJSON_GetObjectItemCaseSensitive(have, v->string), true))
            return false;
    }
    cJSON_ArrayForEach(v, have)
    {
        if (!cJSON_GetObjectItemCaseSensitive(want, v->string) && !one_of(v->string, other) &&
            !one_of(v->string, thing) && !(ids && strcmp(v->string, "machine") == 0))
            return false;
    }
    return true;
}

/* Do these things come to rest at once, and nothing else happens? */
static bool all_rest(const struct home_table *t, const cJSON *ids, const cJSON *have)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, have)
    {
        const struct home_action *x = home_table_action(t, text_of(v, "action"));
        const bool stops = x && (x == t->stop.device || x == t->stop.machine || x == t->stop.power);
        if (!stops || !happens(v) || strcmp(text_of(v, "result"), "confirm") == 0)
            return false;
    }
    return same_ids(ids, have->child, NULL);
}

/* Keeps only relevant actions: those that happen, and those that the row mentions. */
static void keep_what_counts(const struct home_table *t, const cJSON *want, cJSON *have)
{
    bool results = false, questions = false;
    const cJSON *v;
    cJSON_ArrayForEach(v, want)
    {
        results |= cJSON_HasObjectItem(v, "result");
        questions |= is_question(t, v);
    }
    for (int i = cJSON_GetArraySize(have) - 1; i >= 0; i--) {
        const cJSON *x = cJSON_GetArrayItem(have, i);
        bool counts = is_question(t, x) ? questions : results || happens(x);
        if (!counts)
            cJSON_DeleteItemFromArray(have, i);
    }
}

static bool same_actions(const cJSON *want, const cJSON *have)
{
    const cJSON *h = have->child;
    if (cJSON_GetArraySize(want) != cJSON_GetArraySize(have))
        return false;
    for (const cJSON *w = want->child; w; w = w->next, h = h->next)
        if (!same_action(w, h))
            return false;
    return true;
}

/* Are these the actions of the row, or one of the other ways to name them? */
static bool is_right(const struct home_table *t, const struct eval_row *row, const cJSON *have)
{
    const cJSON *other, *rests = cJSON_GetObjectItemCaseSensitive(row->json, "rests");
    if (rests ? all_rest(t, rests, have)
              : same_actions(cJSON_GetObjectItemCaseSensitive(row->json, "actions"), have))
        return true;
    cJSON_ArrayForEach(other, cJSON_GetObjectItemCaseSensitive(row->json, "or"))
    {
        if (same_actions(other, have))
            return true;
    }
    return false;
}

/* ---- running -------------------------------------------------------------------------------- */

struct run {
    const struct opts *o;
    struct ask_pack pack;
    struct tally tally;
};

/* One text in a conversation; *actions is the caller's. */
static int say(struct run *x, const char *conversation, const char *text, time_t now,
               cJSON **actions, double *ms, struct err *e)
{
    struct ask_request *r;
    struct ask_opts o = {.text = text,
                         .text_bytes = strlen(text),
                         .conversation = conversation,
                         .now = now,
                         .no_reply = true};
    uint64_t t0 = clock_ns();
    int rc = ask_submit(x->pack.ask, &o, &r, e);
    if (rc == SHOAL_ELIMIT) { /* too much to act on: nothing happens */
        *actions = cJSON_CreateArray();
        return *actions ? 0 : err_set(e, SHOAL_ENOMEM, "actions");
    }
    if (rc < 0)
        return rc;
    rc = ask_wait(r);
    *ms = (double)(clock_ns() - t0) / 1e6;
    struct buf b;
    buf_init(&b, (size_t)1 << 22);
    struct json_out j = json_out_make(&b);
    const struct ask_plan *p = ask_plan_of(r);
    json_out_array(&j);
    for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++)
        ask_plan_action_json(&j, p->actions[i]);
    json_out_array_end(&j);
    if (rc < 0)
        rc = err_set(e, rc, "%s", ask_message_of(r));
    *actions = rc == 0 && b.rc == 0 ? cJSON_Parse(buf_str(&b)) : NULL;
    if (rc == 0 && !*actions)
        rc = err_set(e, SHOAL_ENOMEM, "actions");
    buf_fini(&b);
    ask_free(r);
    return rc;
}

static int read_now(const struct eval_row *row, time_t *out, struct err *e)
{
    const char *s = text_of(row->json, "now");
    struct tm tm = {.tm_isdst = -1};
    *out = 0;
    if (!*s)
        return 0;
    const char *end = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!end || *end)
        return err_set(e, SHOAL_EFORMAT, "%s:%llu: now must be like 2026-11-15T14:05:00", row->file,
                       (unsigned long long)row->line);
    *out = mktime(&tm);
    return 0;
}

static struct kind *kind_of(struct tally *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_kinds; i++)
        if (strcmp(t->kinds[i].name, name) == 0)
            return &t->kinds[i];
    if (t->n_kinds == MAX_KINDS)
        return &t->kinds[MAX_KINDS - 1];
    t->kinds[t->n_kinds].name = name;
    return &t->kinds[t->n_kinds++];
}

static void count(struct kind *k, const cJSON *want, const cJSON *have, bool right)
{
    bool nothing = cJSON_GetArraySize(want) == 0, acted = false, asked = false;
    const cJSON *v;
    cJSON_ArrayForEach(v, have)
    {
        bool confirm = strcmp(text_of(v, "result"), "confirm") == 0;
        acted |= !confirm;
        asked |= confirm;
    }
    k->rows++;
    k->right += right;
    k->nothing += nothing;
    k->acted += nothing && acted;
    k->asked += nothing && asked;
}

/* What a row wants: a list of actions, or of things that must rest. */
static const cJSON *wanted(const struct eval_row *row)
{
    const cJSON *rests = cJSON_GetObjectItemCaseSensitive(row->json, "rests");
    return rests ? rests : cJSON_GetObjectItemCaseSensitive(row->json, "actions");
}

static void list_wrong(struct tally *t, const struct eval_row *row, const cJSON *have)
{
    char *w = cJSON_PrintUnformatted(wanted(row));
    char *h = cJSON_PrintUnformatted(have);
    buf_printf(&t->wrong, "%s: %s\n  want %s\n  have %s\n", text_of(row->json, "kind"),
               text_of(row->json, "text"), w ? w : "", h ? h : "");
    cJSON_free(w);
    cJSON_free(h);
}

static int check_row(const struct run *x, const struct eval_row *row, struct err *e)
{
    const char *home = text_of(row->json, "home");
    unsigned long long line = row->line;
    if (!*text_of(row->json, "text"))
        return err_set(e, SHOAL_EFORMAT, "%s:%llu: the row has no text", row->file, line);
    if (!cJSON_IsArray(wanted(row)))
        return err_set(e, SHOAL_EFORMAT, "%s:%llu: actions must be a list; [] means nothing",
                       row->file, line);
    if (*home && strcmp(home, x->pack.table->name) != 0)
        return err_set(e, SHOAL_EFORMAT,
                       "%s:%llu: the row is for the table \"%s\", this one is \"%s\"; use --table",
                       row->file, line, home, x->pack.table->name);
    return 0;
}

static int run_row(struct run *x, const struct eval_row *row, size_t index, struct err *e)
{
    struct tally *t = &x->tally;
    char conversation[32];
    const cJSON *v, *want = wanted(row);
    cJSON *have = NULL;
    double ms = 0.0;
    time_t now = 0;
    int rc = check_row(x, row, e);
    if (rc == 0)
        rc = read_now(row, &now, e);
    snprintf(conversation, sizeof(conversation), "row %zu", index);
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(row->json, "before"))
    {
        if (rc == 0 && cJSON_IsString(v)) {
            rc = say(x, conversation, v->valuestring, now, &have, &ms, e);
            cJSON_Delete(have);
            have = NULL;
        }
    }
    if (rc == 0)
        rc = say(x, conversation, text_of(row->json, "text"), now, &have, &ms, e);
    if (rc < 0)
        return rc;
    t->latency_ms[t->n_latencies++] = ms;
    keep_what_counts(x->pack.table, want, have);
    bool right = is_right(x->pack.table, row, have);
    count(kind_of(t, text_of(row->json, "kind")), want, have, right);
    count(&t->kinds[MAX_KINDS], want, have, right);
    if (!right && opts_flag(x->o, "wrong"))
        list_wrong(t, row, have);
    cJSON_Delete(have);
    return 0;
}

/* ---- figures -------------------------------------------------------------------------------- */

static void put_kind(struct json_out *j, const struct kind *k)
{
    json_out_object(j);
    json_out_member_str(j, "kind", k->name);
    json_out_member_uint(j, "rows", k->rows);
    json_out_member_uint(j, "right", k->right);
    json_out_member_uint(j, "nothing", k->nothing);
    json_out_member_uint(j, "acted", k->acted);
    json_out_member_uint(j, "asked", k->asked);
    json_out_object_end(j);
}

static void put_json(struct buf *b, struct tally *t)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "all");
    put_kind(&j, &t->kinds[MAX_KINDS]);
    json_out_member_array(&j, "kinds");
    for (uint32_t i = 0; i < t->n_kinds; i++)
        put_kind(&j, &t->kinds[i]);
    json_out_array_end(&j);
    json_out_member_object(&j, "latency_ms");
    json_out_member_num(&j, "p50", quality_quantile(t->latency_ms, t->n_latencies, 0.5));
    json_out_member_num(&j, "p99", quality_quantile(t->latency_ms, t->n_latencies, 0.99));
    json_out_object_end(&j);
    if (t->wrong.len > 0)
        json_out_member_strn(&j, "wrong", buf_str(&t->wrong), t->wrong.len);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void put_line(struct buf *b, const struct kind *k)
{
    buf_printf(b, "%-14s %5u  %6.1f %%", *k->name ? k->name : "(none)", k->rows,
               k->rows ? 100.0 * k->right / k->rows : 0.0);
    if (k->nothing > 0)
        buf_printf(b, "  of %u non-commands %u acted (%.1f %%), %u asked", k->nothing, k->acted,
                   100.0 * k->acted / k->nothing, k->asked);
    buf_putc(b, '\n');
}

static void put_text(struct buf *b, struct tally *t)
{
    buf_put(b, buf_str(&t->wrong), t->wrong.len);
    buf_printf(b, "%-14s %5s  %8s\n", "kind", "rows", "right");
    for (uint32_t i = 0; i < t->n_kinds; i++)
        put_line(b, &t->kinds[i]);
    put_line(b, &t->kinds[MAX_KINDS]);
    buf_printf(b, "latency_ms p50 %.2f  p99 %.2f\n",
               quality_quantile(t->latency_ms, t->n_latencies, 0.5),
               quality_quantile(t->latency_ms, t->n_latencies, 0.99));
}

static int run_all(struct run *x, const struct eval_rows *rows)
{
    struct err e = {0};
    struct buf b;
    int rc = 0;
    x->tally.kinds[MAX_KINDS].name = "all";
    buf_init(&x->tally.wrong, (size_t)1 << 26);
    buf_init(&b, (size_t)1 << 27);
    x->tally.latency_ms = mem_zalloc_n(rows->n + 1, sizeof(double));
    if (!x->tally.latency_ms)
        rc = err_set(&e, SHOAL_ENOMEM, "figures");
    for (size_t i = 0; rc == 0 && i < rows->n; i++)
        rc = run_row(x, &rows->rows[i], i, &e);
    if (rc == 0 && opts_flag(x->o, "json"))
        put_json(&b, &x->tally);
    else if (rc == 0)
        put_text(&b, &x->tally);
    int exit_code = rc < 0 ? cmd_fail(&page, "%s", e.msg) : cmd_print(&page, &b);
    buf_fini(&b);
    buf_fini(&x->tally.wrong);
    mem_free(x->tally.latency_ms);
    return exit_code;
}

int cmd_eval_ask(int argc, const char *const *argv)
{
    struct opts o;
    struct eval_rows rows = {0};
    struct run x = {.o = &o};
    struct err e = {0};
    int exit_code, rc = 0;
    if (!cmd_begin(&o, &page, argc, argv, &exit_code))
        return exit_code;
    struct ask_pack_opts po = {.dir = opts_text(&o, "models"),
                               .table = opts_text(&o, "table"),
                               .home = opts_text(&o, "home"),
                               .no_reply = true,
                               .parts_only = true,
                               .n_threads = opts_u32(&o, "threads")};
    const struct home_open_opts ho = {.path = opts_text(&o, "home"), .models = po.dir};
    struct home_things *things = NULL;
    for (size_t i = 0; rc == 0 && i < o.n_args; i++)
        rc = eval_rows_read(&rows, o.args[i], &e);
    if (rc == 0 && opts_uint(&o, "limit"))
        eval_rows_cut(&rows, opts_uint(&o, "limit"));
    if (rc == 0)
        rc = ask_pack_open(&x.pack, &po, &e);
    if (rc == 0 && (ho.path || !po.table))
        rc = home_open(&things, x.pack.table, &ho, &e);
    if (rc == 0)
        rc = ask_create(&x.pack.ask, x.pack.table, things, x.pack.reader, NULL, &e);
    exit_code = rc == 0 ? run_all(&x, &rows) : cmd_fail(&page, "%s", e.msg);
    ask_pack_close(&x.pack);
    home_things_destroy(things);
    eval_rows_fini(&rows);
    opts_fini(&o);
    return exit_code;
}
