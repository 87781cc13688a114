/* generation.c - submitting generations to an engine.  Any thread. */
#include <math.h>
#include <string.h>

#include "base/arg.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/plural.h"
#include "base/sized.h"
#include "engine/engine_adapter.h"
#include "engine/engine_state.h"
#include "engine/estimate.h"
#include "engine/kinds.h"
#include "engine/queue.h"
#include "engine/task.h"

#define LEAST_SHIFTED (4u * KERN_PAGE) /* tokens of the context */

/* Every array that has a count, and every text that has a length. */
static int check_arrays(const struct shoal_task_opts *o, struct err *e)
{
    const bool has_text =
        o->constraint != SHOAL_CONSTRAINT_NONE && o->constraint != SHOAL_CONSTRAINT_JSON;
    int rc = arg_check_n(o->stop, o->n_stop, "stop", e);
    for (uint32_t i = 0; rc == 0 && i < o->n_stop; i++)
        rc = arg_check(o->stop[i], "stop[]", e);
    if (rc == 0)
        rc = arg_check_n(o->sampling.bias, o->sampling.n_bias, "sampling.bias", e);
    if (rc == 0 && has_text)
        rc = arg_check(o->constraint_text, "constraint_text", e);
    return rc;
}

static int check(const struct shoal_engine *en, const struct shoal_task_opts *o, struct err *e)
{
    uint32_t n_vocab = en->lm.info.n_vocab, n_ctx = en->lm.info.n_ctx;
    int rc = check_arrays(o, e);
    if (rc == 0)
        rc = task_check_weight(o->weight, e);
    if (rc < 0)
        return rc;
    if (o->adapter && o->adapter->engine != en)
        return err_set(e, SHOAL_EINVAL, "the adapter was opened for another engine");
    if (!o->adapter && o->adapter_scale != 0)
        return err_set(e, SHOAL_EINVAL, "adapter_scale is for models with an adapter");
    if (!(fabs(o->adapter_scale) <= ENGINE_ADAPTER_MAX_SCALE))
        return err_set(e, SHOAL_EINVAL, "adapter_scale is %g, expected -%g to %g", o->adapter_scale,
                       ENGINE_ADAPTER_MAX_SCALE, ENGINE_ADAPTER_MAX_SCALE);
    if (!o->tokens || o->n_tokens == 0)
        return err_set(e, SHOAL_EINVAL, "the prompt is empty");
    if (o->n_continued > o->n_tokens)
        return err_set(e, SHOAL_EINVAL, "n_continued is %u, but the prompt has only %u token%s",
                       o->n_continued, o->n_tokens, plural(o->n_tokens));
    for (uint32_t i = 0; i < o->n_tokens; i++)
        if (o->tokens[i] < 0 || (uint32_t)o->tokens[i] >= n_vocab)
            return err_set(e, SHOAL_EINVAL,
                           "token %d at position %u is not in the vocabulary of %u tokens",
                           o->tokens[i], i, n_vocab);
    if (o->n_tokens >= n_ctx)
        return err_set(e, SHOAL_ELIMIT, "the prompt has %u tokens, but the context holds only %u",
                       o->n_tokens, n_ctx);
    if (o->deadline_ns && clock_ns() > o->deadline_ns)
        return err_set(e, SHOAL_EDEADLINE, "the deadline passed before the task was submitted");
    return sampler_check(&o->sampling, n_vocab, e);
}

/* Whether the answer may go beyond the context: it has a limit of its own, nothing has to see all
 * of it, and half of the context is at least a page. */
static bool may_shift(const struct shoal_engine *en, const struct shoal_task_opts *o)
{
    return en->context_shift && !o->no_shift && o->max_tokens > 0 &&
           o->constraint == SHOAL_CONSTRAINT_NONE && !o->prompt_logprobs &&
           en->lm.info.n_ctx >= LEAST_SHIFTED;
}

/* Requested number of tokens; 0: unlimited, until the model ends. */
static uint32_t limit_of(const struct shoal_engine *en, const struct shoal_task_opts *o)
{
    uint32_t room = en->lm.info.n_ctx - o->n_tokens;
    if (may_shift(en, o))
        return o->max_tokens;
    bool full = o->max_tokens > room || (o->max_tokens == 0 && o->ignore_end);
    return full ? room : o->max_tokens;
}

/* Refused immediately if the answer is not expected to be complete in time. */
static int price(struct shoal_engine *en, const struct shoal_task_opts *o,
                 struct cost_estimate *out, struct err *e)
{
    const struct cost_request r = {
        .prompt_tokens = o->n_tokens, .max_tokens = limit_of(en, o), .ignore_end = o->ignore_end};
    const struct fair_who who = {o->client, o->weight, o->priority};
    *out = estimate_request(en, &r, &who);
    return cost_check(out, o->deadline_ns, clock_ns(), e);
}

/* Replays tokens generated before through the text output, so that an open character or the start
 * of a stop string is continued. Their text was already shown. */
static void replay_continued(struct shoal_task *t, const struct shoal_task_opts *o)
{
    for (uint32_t i = o->n_tokens - o->n_continued; i < o->n_tokens && !t->stopped; i++) {
        size_t show;
        t->stopped = text_out_push(&t->text, o->tokens[i], &show);
        text_out_shown(&t->text, show);
    }
}

static int task_create(struct shoal_task **out, struct shoal_engine *en,
                       const struct shoal_task_opts *o, struct err *e)
{
    struct shoal_task *t = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    uint32_t n_ctx = en->lm.info.n_ctx, room = n_ctx - o->n_tokens;
    t->engine = en;
    t->slot = TASK_NO_SLOT;
    t->state_from = STATES_NONE;
    t->passing_page = KV_NO_PAGE;
    atomic_init(&t->refs, 2);
    t->sampling = o->sampling;
    t->n_prompt = t->n_tokens = o->n_tokens;
    t->n_continued = o->n_continued;
    t->shifts = may_shift(en, o) && o->max_tokens > room;
    t->max_tokens = t->shifts || (o->max_tokens && o->max_tokens < room) ? o->max_tokens : room;
    t->capacity = t->shifts ? n_ctx : t->n_prompt + t->max_tokens;
    t->ignore_end = o->ignore_end;
    t->prompt_logprobs = o->prompt_logprobs && o->sampling.logprobs;
    t->prompt_only = t->prompt_logprobs && o->prompt_only;
    t->progress = o->progress;
    t->drawn_logprobs = o->drawn_logprobs;
    t->fresh = o->fresh_prefix;
    t->keep_tokens = o->keep_tokens < n_ctx ? (uint32_t)o->keep_tokens : n_ctx;
    t->deadline_ns = o->deadline_ns;
    t->priority = o->priority;
    t->client_id = o->client;
    if (o->adapter) {
        t->adapter = engine_adapter_ref(o->adapter);
        t->adapter_scale = engine_adapter_scale(o->adapter, o->adapter_scale);
    }
    t->scope = engine_adapter_scope(o->shared_prefix ? 0 : o->client, t->adapter, t->adapter_scale);
    t->weight = task_weight(o->client, o->weight);
    t->event = o->event;
    t->event_ctx = o->event_ctx;
    /* The last token is never computed, but one more page costs little and keeps this simple. */
    t->need_pages = (t->capacity + KERN_PAGE - 1) / KERN_PAGE;
    int rc = 0;
    if (t->need_pages > en->n_pages)
        rc =
            err_set(e, SHOAL_ELIMIT,
                    "%u prompt and %u new tokens need %u pages of %u tokens; the cache has only %u",
                    t->n_prompt, t->max_tokens, t->need_pages, KERN_PAGE, en->n_pages);
    t->tokens = mem_zalloc_n(t->capacity, sizeof(*t->tokens));
    t->pages = mem_zalloc_n(t->need_pages, sizeof(*t->pages));
    t->bias = mem_zalloc_n(o->sampling.n_bias, sizeof(*t->bias));
    if (rc == 0 && (!t->tokens || !t->pages || !t->bias))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a task of %u tokens", t->capacity);
    const int32_t before =
        o->n_continued < o->n_tokens ? o->tokens[o->n_tokens - o->n_continued - 1] : TOKENIZER_NONE;
    t->constraint = (struct constraint_run){.t = en->tokenizer, .prev = before};
    if (rc == 0 && o->constraint != SHOAL_CONSTRAINT_NONE)
        rc = constraints_get(&t->constraint.c, &en->constraints, en->tokenizer, en->lm.info.n_vocab,
                             o->constraint, o->constraint_text, o->constraint_bytes, e);
    if (rc == 0)
        rc = text_out_init(&t->text, en->tokenizer, before,
                           o->special ? TOKENIZER_RENDER_SPECIAL : 0, o->stop, o->n_stop, e);
    if (rc < 0) {
        task_destroy(t);
        return rc;
    }
    replay_continued(t, o);
    memcpy(t->tokens, o->tokens, o->n_tokens * sizeof(*t->tokens));
    if (o->sampling.n_bias)
        memcpy(t->bias, o->sampling.bias, o->sampling.n_bias * sizeof(*t->bias));
    t->sampling.bias = t->bias;
    *out = t;
    return 0;
}

int shoal_task_submit(struct shoal_engine *en, const struct shoal_task_opts *opts,
                      struct shoal_task **task, struct err *e)
{
    struct shoal_task_opts o;
    struct shoal_task *t = NULL;
    struct cost_estimate x;
    struct err own;
    if (!e)
        e = &own;
    int rc = arg_check(task, "task", e);
    if (rc < 0)
        return rc;
    *task = NULL;
    rc = arg_check(en, "engine", e);
    if (rc < 0)
        return rc;
    if (!en->lm.ops)
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    rc = sized_read(&o, sizeof(o), opts, "shoal_task_opts", e);
    if (rc == 0)
        rc = check(en, &o, e);
    if (rc == 0)
        rc = price(en, &o, &x, e);
    if (rc == 0)
        rc = task_create(&t, en, &o, e);
    if (rc < 0)
        return rc;
    t->expected = cost_expected_tokens(&en->cost, limit_of(en, &o), o.ignore_end);
    t->longest = cost_longest_tokens(&en->cost, limit_of(en, &o), o.ignore_end);
    t->predicted_ns = x.total_ns;
    rc = queue_submit(en, t, o.held, e);
    if (rc < 0) {
        task_destroy(t);
        return rc;
    }
    *task = t;
    return 0;
}
