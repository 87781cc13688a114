/* session.c - a conversation: the tokens so far, and generations that continue them.  Any thread.
 */
#include <pthread.h>
#include <string.h>

#include "base/arg.h"
#include "base/mem.h"
#include "base/sized.h"
#include "engine/engine_state.h"
#include "engine/kinds.h"

struct shoal_session {
    struct shoal_engine *engine;
    int32_t *tokens;
    size_t n, cap;
    pthread_mutex_t lock; /* events arrive on another thread */
    shoal_event_fn event;
    void *event_ctx;
};

int shoal_session_create(struct shoal_session **out, struct shoal_engine *en, struct err *e)
{
    int rc = arg_check(out, "out", e);
    if (rc < 0)
        return rc;
    *out = NULL;
    rc = arg_check(en, "engine", e);
    if (rc < 0)
        return rc;
    if (!en->lm.ops)
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    struct shoal_session *s = mem_zalloc(sizeof(*s));
    size_t cap = en->lm.info.n_ctx;
    if (s)
        s->tokens = mem_zalloc_n(cap, sizeof(*s->tokens));
    if (!s || !s->tokens) {
        mem_free(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a session");
    }
    s->engine = en;
    s->cap = cap;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return 0;
}

void shoal_session_destroy(struct shoal_session *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    mem_free(s->tokens);
    mem_free(s);
}

int shoal_session_append(struct shoal_session *s, const int32_t *tokens, size_t n, struct err *e)
{
    int rc = arg_check(s, "session", e);
    if (rc == 0)
        rc = arg_check_n(tokens, n, "tokens", e);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&s->lock);
    if (n > s->cap - s->n) {
        rc = err_set(e, SHOAL_ELIMIT, "the conversation has %zu tokens, %zu more do not fit in %zu",
                     s->n, n, s->cap);
    } else if (n > 0) {
        memcpy(s->tokens + s->n, tokens, n * sizeof(*tokens));
        s->n += n;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void session_event(void *ctx, const struct shoal_event *ev)
{
    struct shoal_session *s = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0)
        (void)shoal_session_append(s, &ev->token, 1, NULL); /* cap is the context length: it fits */
    if (s->event)
        s->event(s->event_ctx, ev);
}

int shoal_session_generate(struct shoal_session *s, const struct shoal_task_opts *opts,
                           struct shoal_task **task, struct err *e)
{
    struct shoal_task_opts o;
    int rc = arg_check(task, "task", e);
    if (rc < 0)
        return rc;
    *task = NULL;
    rc = arg_check(s, "session", e);
    if (rc == 0)
        rc = sized_read(&o, sizeof(o), opts, "shoal_task_opts", e);
    if (rc < 0)
        return rc;
    s->event = o.event;
    s->event_ctx = o.event_ctx;
    o.event = session_event;
    o.event_ctx = s;
    o.tokens = s->tokens;
    o.n_tokens = (uint32_t)s->n;
    return shoal_task_submit(s->engine, &o, task, e);
}

size_t shoal_session_tokens(const struct shoal_session *s, const int32_t **tokens)
{
    if (tokens)
        *tokens = s ? s->tokens : NULL;
    return s ? s->n : 0;
}
