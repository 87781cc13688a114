/* ask.c - the life of a request, see ask.h. */
#include "apps/home/ask/ask.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "apps/home/ask/ask_decide.h"
#include "apps/home/ask/ask_read.h"
#include "apps/home/ask/ask_speak.h"

#define LANGUAGES_BYTES 200u /* of a message */
#define ARENA_BYTES ((size_t)8 << 20)

/* ---- the flow itself ------------------------------------------------------------------------ */

int ask_create(struct ask **out, const struct home_table *table, struct home_things *things,
               struct shoal_engine *reader, struct shoal_engine *reply, struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    *out = NULL;
    if (reader)
        shoal_engine_info(reader, &info);
    if (reader && !(info.kinds & SHOAL_KIND_CLASSIFY))
        return err_set(e, SHOAL_EUNSUPPORTED, "the model \"%s\" is no reader: it writes no plans",
                       table->reader);
    struct ask *a = mem_zalloc(sizeof(*a));
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "flow");
    a->table = table;
    a->things = things;
    a->reader = reader;
    a->reply = reply;
    int rc = home_memory_create(&a->memory, e);
    if (rc < 0) {
        ask_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void ask_use_file(struct ask *a, struct home_file *file)
{
    home_file_unref(a->file);
    a->file = home_file_ref(file);
}

void ask_destroy(struct ask *a)
{
    if (!a)
        return;
    home_file_unref(a->file);
    home_memory_destroy(a->memory);
    mem_free(a);
}

/* ---- from stage to stage --------------------------------------------------------------------- */

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
    ask_request_drop_task(r);
    if (r->stage == ASK_STAGE_READ) {
        ask_request_step(r, "read", "reader");
        if (r->code == 0 && ask_read_again(r))
            return;
        if (r->code == 0) {
            ask_decide_read(r);
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

static const char *copied(struct ask_request *r, const char *text)
{
    return arena_printf(&r->arena, "%s", text ? text : "");
}

/* Is the text answered without a model: it stops something, or it is a yes, or too long? */
static int begin(struct ask_request *r, const struct ask_opts *o, bool *answered, struct err *e)
{
    r->conversation = copied(r, o->conversation);
    r->owner = copied(r, o->owner);
    r->room = o->room ? home_words_lower(&r->arena, o->room) : NULL;
    r->text = arena_printf(&r->arena, "%.*s", (int)o->text_bytes, o->text ? o->text : "");
    *answered = r->arena.rc == 0 && !o->confirm && ask_decide_stop(r);
    if (!*answered) {
        r->words = home_words_split(&r->arena, r->text);
        r->too_long = r->words.n > READ_PLAN_MAX_WORDS && r->table->say[HOME_SAY_LONG].n > 0;
    }
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %zu bytes", o->text_bytes);
    if (r->words.n == 0 && !o->confirm && !*answered)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    *answered =
        *answered || ask_decide_overheard(r) || (!r->dry && ask_decide_answered(r, o->confirm));
    return 0;
}

static void init(struct ask_request *r, struct ask *a, const struct ask_opts *o)
{
    r->ask = a;
    r->table = home_table_in(a->table, o->language);
    r->home = a->things ? home_things_file(a->things) : a->file ? home_file_ref(a->file) : NULL;
    r->file = home_file_in(r->home, r->table->language);
    r->reader_engine = o->reader ? o->reader : a->reader;
    r->reply_engine = o->reply ? o->reply : a->reply;
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
    r->speaks = !o->no_reply && !o->dry && (r->reply_engine || o->away || !r->table->reply);
    r->heard = o->heard;
    r->dry = o->dry;
    r->advance = advance;
    r->event = o->event;
    r->event_ctx = o->event_ctx;
    r->now_s = o->now ? o->now : time(NULL);
    localtime_r(&r->now_s, &r->now);
}

static int no_language(const struct home_table *t, const char *said, struct err *e)
{
    char known[LANGUAGES_BYTES] = "";
    for (size_t n = 0; t && n < sizeof(known); t = t->next)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", t->language);
    return err_set(e, SHOAL_EINVAL,
                   "there are no words for the language \"%.40s\" here, only for %s", said, known);
}

int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out, struct err *e)
{
    bool answered = false;
    *out = NULL;
    if (o->text_bytes > ASK_MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes; the maximum is %u", o->text_bytes,
                       ASK_MAX_TEXT);
    if (o->text && memchr(o->text, '\0', o->text_bytes))
        return err_set(e, SHOAL_EINVAL,
                       "the text contains NUL (\\0), which is not allowed: remove it");
    if (!o->reader && !a->reader && !o->away)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "commands need the model \"%s\", which reads the text", a->table->reader);
    if (!home_table_in(a->table, o->language))
        return no_language(a->table, o->language, e);
    struct ask_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "request");
    init(r, a, o);
    int rc = begin(r, o, &answered, e);
    if (rc < 0) {
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        ask_request_unref(r);
        return rc;
    }
    *out = r;
    if (answered)
        ask_decide_carry(r);
    else
        ask_read_start(r);
    return 0;
}

void ask_cancel(struct ask_request *r)
{
    atomic_store_explicit(&r->cancel, true, memory_order_relaxed);
    pthread_mutex_lock(&r->lock);
    if (r->task)
        shoal_task_cancel(r->task);
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
