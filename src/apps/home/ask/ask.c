/* ask.c - the life of a request, see ask.h. */
#include "apps/home/ask/ask.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "apps/home/ask/ask_decide.h"
#include "apps/home/ask/ask_read.h"
#include "apps/home/ask/ask_request.h"
#include "apps/home/ask/ask_speak.h"
#include "apps/home/ask/ask_understand.h"
#include "apps/home/home_clauses.h"
#include "apps/home/home_spell.h"
#include "apps/home/stop/stop.h"
#include "apps/home/turn/home_reword.h"
#include "apps/home/turn/home_turn.h"
#include "apps/home/table/home_words.h"

#define ARENA_BYTES ((size_t)8 << 20)

/* ---- the flow itself ------------------------------------------------------------------------ */

static int read_config(struct ask *a, const char *json, size_t n, struct err *e)
{
    cJSON *c = json ? cJSON_ParseWithLength(json, n) : NULL;
    const cJSON *s = cJSON_GetObjectItemCaseSensitive(c, "shoal"), *v;
    const cJSON *router = cJSON_GetObjectItemCaseSensitive(s, "router");
    const cJSON *intent = cJSON_GetObjectItemCaseSensitive(s, "intent");
    const cJSON *sets = cJSON_GetObjectItemCaseSensitive(intent, "label_sets");
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(sets, a->table->intent_labels);
    const cJSON *threshold = cJSON_GetObjectItemCaseSensitive(set, "threshold");
    int rc = 0;
    if (!cJSON_IsObject(router) || !cJSON_IsNumber(threshold))
        rc = err_set(e, SHOAL_EFORMAT,
                     "the encoder's config.json has no shoal.router, or no threshold in "
                     "shoal.intent.label_sets.%s",
                     a->table->intent_labels);
    else
        a->threshold = (float)threshold->valuedouble;
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(router, "flow"))
    {
        if (rc < 0 || !cJSON_IsString(v) || a->n_flows == ASK_MAX_FLOWS)
            continue;
        a->flows[a->n_flows].label = mem_strdup(v->string);
        a->flows[a->n_flows].flow = mem_strdup(v->valuestring);
        if (!a->flows[a->n_flows].label || !a->flows[a->n_flows].flow)
            rc = err_set(e, SHOAL_ENOMEM, "flow");
        a->n_flows++;
    }
    cJSON_Delete(c);
    return rc;
}

int ask_create_away(struct ask **out, const struct home_table *table, struct home_things *things,
                    const char *config, size_t n, struct err *e)
{
    struct ask *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "flow");
    a->table = table;
    a->things = things;
    int rc = read_config(a, config, n, e);
    if (rc == 0)
        rc = home_memory_create(&a->memory, e);
    if (rc < 0) {
        ask_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

int ask_create(struct ask **out, const struct home_table *table, struct home_things *things,
               struct shoal_engine *encoder, struct shoal_engine *act, struct shoal_engine *reply,
               struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    size_t n = 0;
    *out = NULL;
    shoal_engine_info(encoder, &info);
    if (!(info.kinds & SHOAL_KIND_CLASSIFY) || !(info.kinds & SHOAL_KIND_TAG))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the encoder cannot both classify and tag, which ask needs");
    const char *config = shoal_engine_metadata(encoder, "huggingface.config", &n);
    int rc = ask_create_away(out, table, things, config, n, e);
    if (rc < 0)
        return rc;
    (*out)->encoder = encoder;
    (*out)->act = act;
    (*out)->reply = reply;
    return 0;
}

void ask_use_reader(struct ask *a, struct shoal_engine *reader)
{
    a->reader = reader;
}

void ask_destroy(struct ask *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->n_flows; i++) {
        mem_free(a->flows[i].label);
        mem_free(a->flows[i].flow);
    }
    home_memory_destroy(a->memory);
    mem_free(a);
}

/* ---- from stage to stage --------------------------------------------------------------------- */

static void start_understanding(struct ask_request *r);

static void reply_or_finish(struct ask_request *r)
{
    if (r->code == 0 && r->speaks)
        ask_speak_plain(r);
    if (r->code == 0 && r->speaks && r->at_context < r->n_contexts)
        ask_speak_start(r);
    else
        ask_request_finish(r);
}

/* Runs when the last part of a stage is done: starts the next stage, or ends the request. */
static void advance(struct ask_request *r)
{
    ask_request_drop_tasks(r);
    if (r->stage == ASK_STAGE_ACT) {
        ask_request_step(r, "act", "act");
        if (r->code == 0 && atomic_load_explicit(&r->cancel, memory_order_relaxed))
            ask_request_fail(r, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
        if (r->code == 0)
            start_understanding(r);
        else
            ask_request_finish(r);
        return;
    }
    if (r->stage == ASK_STAGE_READ) {
        ask_request_step(r, "read", "reader");
        if (r->code == 0) {
            ask_decide_read(r);
            ask_decide_carry(r);
            return;
        }
    } else if (r->stage == ASK_STAGE_UNDERSTAND) {
        ask_request_step(r, "understand", "encoder");
        if (r->code == 0 && ask_understand_refer(r))
            return;
        if (r->code == 0) {
            ask_decide_text(r);
            ask_decide_carry(r);
            return;
        }
    } else if (r->stage == ASK_STAGE_CARRY) {
        ask_decide_carried(r);
        ask_decide_finish(r);
        if (r->code == 0)
            ask_request_emit(r, &(struct ask_event){.kind = ASK_EVENT_PLAN});
    } else {
        ask_request_step(r, "reply", "reply");
        if (r->code == 0)
            ask_speak_check(r);
        r->at_context++;
        if (r->reply.rc < 0)
            ask_request_fail(r, r->reply.rc, err_text(r->reply.rc));
    }
    if (r->code == 0 && atomic_load_explicit(&r->cancel, memory_order_relaxed))
        ask_request_fail(r, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
    reply_or_finish(r);
}

/* ---- submitting ----------------------------------------------------------------------------- */

/* A word that the encoder's tokenizer has as a single token is not a typo. */
static bool is_common(void *encoder, const char *word)
{
    int32_t *tokens = NULL;
    size_t n = 0;
    int rc = shoal_tokenize(encoder, word, strlen(word), 0, &tokens, &n, NULL);
    shoal_free(tokens);
    return rc == 0 && n == 1;
}

/* Moves references to the previous turn, and words before the command, to where the models expect
 * them. */
static void whole_turn(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_focus last;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &last);
    const char *text = home_turn_whole(&r->arena, t, r->file, &last, &r->words);
    if (!text)
        r->except = home_reword_except(&r->arena, t, r->file, &r->words);
    if (!text)
        r->again = home_turn_again(&r->arena, t, &r->words);
    if (r->except || r->again)
        r->text = home_words_join(&r->arena, &r->words, 0, r->words.n);
    if (!text)
        text = home_turn_order(&r->arena, t, r->file, &r->words);
    if (text) {
        r->text = text;
        r->words = home_words_split(&r->arena, text);
    }
}

/* The text as the user meant it: without a frame around it, and without typos. *unspelt: its words
 * before those were corrected. */
static const char *clean_text(struct arena *a, const struct ask *k, const struct home_file *file,
                              const struct ask_opts *o, home_spell_fn common, void *ctx,
                              struct home_words *words, struct home_words *unspelt)
{
    const char *text = arena_printf(a, "%.*s", (int)o->text_bytes, o->text ? o->text : "");
    *words = home_words_split(a, text);
    struct home_words plain = home_words_plain_all(a, words);
    uint32_t from = 0, to = 0;
    if (a->rc == 0 && home_reword_front(a, k->table, words)) {
        text = home_words_join(a, words, 0, words->n);
        *words = home_words_split(a, text); /* one may have become several */
        plain = home_words_plain_all(a, words);
    }
    if (a->rc == 0)
        home_speech_unwrap(k->table, &plain, &from, &to);
    if (from > 0 || to < words->n) {
        text = home_words_join(a, words, from, to);
        *words = home_words_split(a, text);
    }
    *unspelt = home_words_split(a, text);
    bool spelt = words->n <= ASK_MAX_WORDS && home_spell_fix(a, k->table, file, words, common, ctx);
    if (home_reword_things(a, k->table, file, words) || spelt) {
        text = home_words_join(a, words, 0, words->n);
        *words = home_words_split(a, text);
    }
    return text;
}

/* Is it too long to be a command, a question or a message? */
static bool is_too_long(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_words plain = home_words_plain_all(&r->arena, &r->words);
    if (plain.n <= ASK_MAX_WORDS || t->say[HOME_SAY_LONG].n == 0)
        return false;
    const char **list;
    if (home_clauses_split(&r->arena, t, r->text, &list) > ASK_MAX_CLAUSES)
        return true;
    for (uint32_t i = 0; i < plain.n; i++)
        if ((home_table_word(t, plain.w[i]) & HOME_WORD_FREE_TEXT) ||
            home_table_phrase(&t->stop.alone, &plain, i) > 0) /* never overheard */
            return false;
    return true;
}

/* The text's words; without an act model, all of them form one command. A text that stops something
 * is not read any further. */
static int read_text(struct ask_request *r, const struct ask_opts *o, struct err *e)
{
    struct ask *k = r->ask;
    r->conversation = arena_printf(&r->arena, "%s", o->conversation ? o->conversation : "");
    r->said = arena_printf(&r->arena, "%.*s", (int)o->text_bytes, o->text ? o->text : "");
    r->room = o->room ? home_words_lower(&r->arena, o->room) : NULL;
    r->owner = arena_printf(&r->arena, "%s", o->owner ? o->owner : "");
    r->text = arena_printf(&r->arena, "%.*s", (int)o->text_bytes, o->text ? o->text : "");
    if (r->arena.rc == 0 && !o->confirm && ask_decide_stop(r)) {
        r->stopped = true;
        return 0;
    }
    if (r->reads) {
        r->words = r->unspelt = home_words_split(&r->arena, r->text);
        r->too_long = r->words.n > READ_PLAN_MAX_WORDS && k->table->say[HOME_SAY_LONG].n > 0;
    } else {
        r->text =
            clean_text(&r->arena, k, r->file, o, k->encoder ? is_common : o->is_common,
                       k->encoder ? (void *)k->encoder : o->common_ctx, &r->words, &r->unspelt);
        r->too_long = is_too_long(r);
        if (!r->too_long)
            whole_turn(r);
    }
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %zu bytes", o->text_bytes);
    if (r->words.n == 0 && !o->confirm)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    r->parts[0] = (struct home_part){0, r->words.n, HOME_SPEECH_COMMAND, 1.0f};
    r->n_parts = r->asks_acts ? 0 : 1;
    r->command_p = r->asks_acts ? 0.0f : 1.0f;
    return 0;
}

/* Is a clause the whole text, with nothing removed? */
static bool is_whole(struct ask_request *r, const char *clause)
{
    return strcmp(home_words_trim_end(&r->arena, clause, HOME_WORDS_CLOSING),
                  home_words_trim_end(&r->arena, r->text, HOME_WORDS_CLOSING)) == 0;
}

/* Builds clauses from the speech act of each part of the text. */
static int split(struct ask_request *r, struct err *e)
{
    struct home_said *said;
    uint32_t n = home_speech_pieces(&r->arena, r->ask->table, &r->words, r->parts, r->n_parts,
                                    &said, ASK_MAX_CLAUSES);
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %u words", r->words.n);
    if (n > ASK_MAX_CLAUSES)
        return err_set(e, SHOAL_ELIMIT, "the text has more than %u commands; give fewer at once",
                       ASK_MAX_CLAUSES);
    if (n == 0) /* "please": the user still expects an answer */
        said[n++] = (struct home_said){.text = r->text, .speech = HOME_SPEECH_NONE};
    for (uint32_t i = 0; i < n; i++) {
        float p = said[i].p < r->command_p ? said[i].p : r->command_p;
        r->clauses[i] = (struct home_clause){.text = said[i].text,
                                             .intent = "",
                                             .router = "",
                                             .flow = "",
                                             .threshold = r->ask->threshold,
                                             .again = r->again,
                                             .whole = n == 1 && is_whole(r, said[i].text),
                                             .speech = said[i].speech,
                                             .speech_p = p};
    }
    r->n_clauses = n;
    return 0;
}

/* Rejects a text that is too long before a model reads it. */
static int check_clauses(struct ask_request *r, struct err *e)
{
    const char **list;
    uint32_t n = home_clauses_split(&r->arena, r->ask->table, r->text, &list);
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %u words", r->words.n);
    if (n > ASK_MAX_CLAUSES)
        return err_set(e, SHOAL_ELIMIT, "the text has %u commands; the maximum is %u", n,
                       ASK_MAX_CLAUSES);
    return 0;
}

static void start_understanding(struct ask_request *r)
{
    struct err e = {0};
    int rc = split(r, &e);
    ask_request_step(r, "split", NULL);
    if (rc == SHOAL_ELIMIT && r->arena.rc == 0 && r->ask->table->say[HOME_SAY_LONG].n > 0) {
        ask_decide_too_long(r);
        ask_decide_carry(r);
    } else if (rc < 0) {
        ask_request_fail(r, rc, e.msg);
        ask_request_finish(r);
    } else {
        ask_understand_clauses(r, NULL);
    }
}

struct doubts {
    void (*fn)(void *ctx, const char *word);
    void *ctx;
};

static bool note_doubt(void *ctx, const char *word)
{
    const struct doubts *d = ctx;
    d->fn(d->ctx, word);
    return true; /* as is, for now */
}

int ask_doubtful_words(const struct ask *a, const struct ask_opts *o,
                       void (*fn)(void *ctx, const char *word), void *ctx, struct err *e)
{
    struct doubts d = {fn, ctx};
    struct home_words words, unspelt;
    struct arena arena;
    struct home_file *file = a->things ? home_things_file(a->things) : NULL;
    arena_init(&arena, ARENA_BYTES);
    const struct stop_query q = {
        .t = a->table,
        .file = file,
        .text = arena_printf(&arena, "%.*s", (int)o->text_bytes, o->text ? o->text : "")};
    struct stop what;
    /* ask_submit rejects longer texts, and does not read one that stops something */
    if (o->text_bytes <= ASK_MAX_TEXT && !stop_read(&arena, &q, &what))
        (void)clean_text(&arena, a, file, o, note_doubt, &d, &words, &unspelt);
    int rc = arena.rc < 0 ? err_set(e, arena.rc, "text of %zu bytes", o->text_bytes) : 0;
    home_file_unref(file);
    arena_fini(&arena);
    return rc;
}

int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out, struct err *e)
{
    *out = NULL;
    if (o->text_bytes > ASK_MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes; the maximum is %u", o->text_bytes,
                       ASK_MAX_TEXT);
    if (o->text && memchr(o->text, '\0', o->text_bytes))
        return err_set(e, SHOAL_EINVAL,
                       "the text contains NUL (\\0), which is not allowed: remove it");
    struct shoal_engine *act = o->act ? o->act : a->act;
    struct shoal_engine *reply = o->reply ? o->reply : a->reply;
    if (!act && !o->away && a->table->act)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the table needs the model \"%s\", which tells commands from other talk",
                       a->table->act);
    struct ask_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "request");
    r->ask = a;
    r->asks_acts = a->table->act != NULL;
    r->act_engine = act;
    r->file = a->things ? home_things_file(a->things) : NULL;
    r->reader_engine = o->reader ? o->reader : a->reader;
    r->reads = r->asks_acts && r->file && a->table->plans.n_classes > 0 &&
               (r->reader_engine || (o->away && o->away_reads));
    r->away = o->away;
    atomic_init(&r->refs, 2);
    arena_init(&r->arena, ARENA_BYTES);
    buf_init(&r->reply, ASK_REPLY_BYTES);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->finished, NULL);
    r->start_ns = r->step_ns = clock_ns();
    r->deadline_ns = o->deadline_ns;
    r->priority = o->priority;
    r->client = o->client;
    r->weight = o->weight;
    r->speaks = !o->no_reply && (reply || o->away);
    r->reply_engine = reply;
    r->advance = advance;
    r->event = o->event;
    r->event_ctx = o->event_ctx;
    time_t now = o->now ? o->now : time(NULL);
    r->now_s = now;
    localtime_r(&now, &r->now);
    int rc = read_text(r, o, e);
    bool answered = rc == 0 && (r->stopped || ask_decide_answered(r, o->confirm));
    if (rc == 0 && !answered && !r->reads)
        rc = r->asks_acts ? check_clauses(r, e) : split(r, e);
    if (rc < 0) {
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        ask_request_unref(r);
        return rc;
    }
    *out = r;
    if (answered)
        ask_decide_carry(r);
    else if (r->reads) {
        ask_read_start(r);
    } else if (r->asks_acts) {
        ask_understand_acts(r);
    } else {
        ask_request_step(r, "split", NULL);
        ask_understand_clauses(r, NULL);
    }
    return 0;
}

void ask_cancel(struct ask_request *r)
{
    atomic_store_explicit(&r->cancel, true, memory_order_relaxed);
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_tasks; i++)
        shoal_task_cancel(r->tasks[i]);
    bool done = r->done;
    pthread_mutex_unlock(&r->lock);
    if (r->away && !done)
        r->away->ops->cancel(r->away);
}

int ask_wait(struct ask_request *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->done)
        pthread_cond_wait(&r->finished, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return r->code;
}

void ask_free(struct ask_request *r)
{
    if (!r)
        return;
    ask_cancel(r);
    ask_request_unref(r);
}

/* ---- reading -------------------------------------------------------------------------------- */

const struct ask_plan *ask_plan_of(const struct ask_request *r)
{
    return &r->plan;
}

const char *ask_reply_of(const struct ask_request *r, size_t *n)
{
    *n = r->reply.len;
    return buf_str(&r->reply);
}

struct ask_plan_answer ask_answer_of(const struct ask_request *r)
{
    return (struct ask_plan_answer){.plan = &r->plan,
                                    .reply = buf_str(&r->reply),
                                    .reply_bytes = r->reply.len,
                                    .steps = r->steps,
                                    .n_steps = r->n_steps,
                                    .total_ns = r->total_ns};
}

const char *ask_message_of(const struct ask_request *r)
{
    return r->message;
}
