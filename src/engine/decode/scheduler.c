/* scheduler.c - the thread of an engine that generates text: chooses the tasks that run, plans each
 * step and handles its results.  Between steps this runs on whichever compute thread completed the
 * last one.
 *
 * A step computes one token of every task that decodes, guesses of what follows it where they pay
 * (draft.h) and, in the rest of the batch, a chunk of the prompts that are not yet prefilled, all
 * ordered by priority and deadline.  Nothing is allocated here. */
#include "engine/decode/page_exchange.h"
#include "engine/decode/scheduler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine_adapter.h"
#include "engine/engine_files.h"
#include "engine/queue.h"

#define SHIFT_KEEPS 4u   /* a part of the context at most, of the start of a prompt */
#define SHED_PAUSE 8u    /* steps, until the pace of fewer tasks is known */
#define GUESSED_STEPS 8u /* one of so many steps with guesses is learned from */

/* The task no longer goes on from a checkpoint. */
static void drop_state(struct shoal_engine *en, struct shoal_task *t)
{
    if (t->state_from != STATES_NONE)
        states_release(en->states, t->state_from);
    t->state_from = STATES_NONE;
}

/* Releases all computed state: the pages and the slot in the model. */
static void release_pages(struct shoal_engine *en, struct shoal_task *t)
{
    while (t->n_pages > 0)
        kv_pages_release(en->pages, t->pages[--t->n_pages]);
    t->n_published = 0;
    t->n_computed = 0;
    drop_state(en, t);
    t->passing_page = KV_NO_PAGE;
    if (t->slot != TASK_NO_SLOT) {
        if (en->lm.ops->release)
            en->lm.ops->release(en->lm.impl, t->slot);
        en->slot_used[t->slot] = false;
        t->slot = TASK_NO_SLOT;
    }
    atomic_store_explicit(&en->pages_free, kv_pages_free(en->pages), memory_order_relaxed);
}

static void finish(struct shoal_engine *en, struct shoal_task *t, enum shoal_finish why, int code)
{
    uint64_t now = clock_ns();
    if (code == 0 && (code = engine_files_check_end(en)) < 0)
        why = SHOAL_FINISH_ERROR; /* the answer may mix two versions of the model */
    struct shoal_event ev = {.size = sizeof(ev),
                             .kind = SHOAL_EVENT_DONE,
                             .finish = why,
                             .code = code,
                             .token = -1,
                             .text = "",
                             .prompt_tokens = t->n_prompt,
                             .cached_tokens = t->n_cached,
                             .generated_tokens = task_generated(t),
                             .queue_ns = (t->started_ns ? t->started_ns : now) - t->submitted_ns,
                             .first_token_ns =
                                 t->first_token_ns ? t->first_token_ns - t->submitted_ns : 0,
                             .total_ns = now - t->submitted_ns,
                             .stopped_by_text = why == SHOAL_FINISH_STOP && t->stopped,
                             .stop_index = t->text.stopped_by};
    cost_saw_answer(&en->cost, now, ev.generated_tokens, why == SHOAL_FINISH_STOP);
    if (code == 0)
        cost_saw_total(&en->cost, now, t->predicted_ns, ev.total_ns);
    if (t->slot != TASK_NO_SLOT)
        fair_end(&en->fair, t);
    release_pages(en, t);
    constraint_unref(t->constraint.c); /* the caller may keep the task longer than the engine */
    t->constraint.c = NULL;
    if (t->event)
        t->event(t->event_ctx, &ev);
    queue_done(en, t, code);
}

/* Removes the i-th active task, which may already be freed and had reserved this many pages. */
static void forget_active(struct shoal_engine *en, uint32_t i, uint32_t need_pages)
{
    en->pages_reserved -= need_pages;
    memmove(&en->active[i], &en->active[i + 1], (en->n_active - i - 1) * sizeof(*en->active));
    en->n_active--;
}

static void drop_active(struct shoal_engine *en, uint32_t i)
{
    forget_active(en, i, en->active[i]->need_pages);
}

/* How many of the running tasks with a deadline (of one client; NULL: of all) will be complete in
 * time at this pace. */
static uint32_t n_in_time(const struct shoal_engine *en, const struct fair_client *c, double pace,
                          uint64_t now)
{
    uint32_t n_fit = 0;
    for (uint32_t i = 0; i < en->n_active; i++) {
        const struct shoal_task *t = en->active[i];
        if (t->deadline_ns > 0 && (!c || t->client == c))
            n_fit += (double)now + task_remaining(t) * pace <= (double)t->deadline_ns;
    }
    return n_fit;
}

/* The running task with a deadline and the most remaining work; n_active: none. */
static uint32_t most_to_do(const struct shoal_engine *en)
{
    uint32_t worst = en->n_active;
    for (uint32_t i = 0; i < en->n_active; i++)
        if (en->active[i]->deadline_ns > 0 &&
            (worst == en->n_active ||
             task_remaining(en->active[i]) >= task_remaining(en->active[worst])))
            worst = i;
    return worst;
}

/* If no task with a deadline can finish in time, ends those with the most remaining work, so that
 * others can: otherwise all would fail. Fewer tasks are assumed to be proportionally faster, which
 * the next steps measure. */
static void shed(struct shoal_engine *en, uint64_t now)
{
    const double pace = cost_pace(&en->cost, en->n_active, now);
    const double each = pace / (en->n_active ? en->n_active : 1);
    uint32_t worst;
    if (en->shed_pause > 0) {
        en->shed_pause--;
        return;
    }
    while (en->n_active > 1 && (worst = most_to_do(en)) < en->n_active &&
           n_in_time(en, NULL, each * en->n_active, now) == 0) {
        struct shoal_task *t = en->active[worst];
        drop_active(en, worst);
        finish(en, t, SHOAL_FINISH_ERROR, SHOAL_EDEADLINE);
        en->shed_pause = SHED_PAUSE;
    }
}

static void sweep_client(struct shoal_engine *en, struct fair_client *c, uint64_t now, int changed)
{
    for (struct shoal_task **at = &c->waiting; *at;) {
        struct shoal_task *t = *at;
        int code = changed < 0 ? changed : task_gave_up(t, now);
        if (code == 0 && !t->stopped) {
            at = &t->next;
            continue;
        }
        bool last = !t->next && at == &c->waiting; /* if so, c may be reused for another client */
        queue_take(en, at);
        finish(en, t, code < 0 ? SHOAL_FINISH_ERROR : SHOAL_FINISH_STOP, code);
        if (last)
            return;
    }
}

static void sweep(struct shoal_engine *en)
{
    uint64_t now = clock_ns();
    const int changed = engine_files_check_at(en, now);
    for (uint32_t i = en->fair.n_present; i-- > 0;) /* backwards: a client may leave the list */
        sweep_client(en, en->fair.present[i], now, changed);
    for (uint32_t i = 0; i < en->n_active;) {
        struct shoal_task *t = en->active[i];
        int code = changed < 0 ? changed : task_gave_up(t, now);
        if (code < 0) {
            drop_active(en, i);
            finish(en, t, SHOAL_FINISH_ERROR, code);
        } else {
            i++;
        }
    }
    shed(en, now);
    fair_end_due(&en->fair, en->active, en->n_active);
    fair_age(&en->fair, en->active, en->n_active, (uint64_t)en->step_decoded + en->step_prefilled);
}

/* The task keeps its tokens and returns to the queue. */
static void preempt(struct shoal_engine *en, uint32_t i)
{
    struct shoal_task *t = en->active[i];
    drop_active(en, i);
    fair_end(&en->fair, t);
    release_pages(en, t);
    queue_return(en, t);
}

/* Preempts an active task: the worst one for a task of higher priority, or one of a client that
 * exceeds its share. Its pages stay findable, so little is recomputed. */
static bool make_room(struct shoal_engine *en, const struct shoal_task *t)
{
    if (en->n_active == 0)
        return false;
    uint32_t i = en->n_active - 1;
    if (!task_outranks(t, en->active[i]))
        i = fair_victim(&en->fair, t, en->active, en->n_active, en->max_tasks, en->n_pages);
    if (i == en->n_active)
        return false;
    preempt(en, i);
    return true;
}

/* Whether waiting task t can no longer finish in time: work that is never completed only costs the
 * others time. If others wait too, even a long answer must fit. A partly delivered answer
 * continues. */
static bool is_too_late(struct shoal_engine *en, const struct shoal_task *t)
{
    const struct cost_load l = {.n_active = en->n_active, .max_active = en->max_tasks};
    const uint32_t n_waiting = atomic_load_explicit(&en->load.n_waiting, memory_order_relaxed);
    const struct cost_request r = {.prompt_tokens = t->n_prompt,
                                   .max_tokens = n_waiting > 1 ? t->longest : t->expected,
                                   .ignore_end = true}; /* t is one of the waiting tasks */
    if (t->deadline_ns == 0 || t->n_continued > 0 || t->first_token_ns || en->n_active == 0)
        return false;
    const uint64_t now = clock_ns();
    const struct cost_estimate x = cost_predict(&en->cost, &l, &r, now);
    return (double)now + x.total_ns > (double)t->deadline_ns;
}

/* Whether a running task of the same client would miss its deadline because of t, which is no more
 * urgent. */
static bool would_delay(struct shoal_engine *en, const struct shoal_task *t)
{
    const uint64_t now = clock_ns();
    if (en->n_active == 0 || t->n_continued > 0 || task_outranks(t, en->active[en->n_active - 1]))
        return false;
    return n_in_time(en, t->client, cost_pace(&en->cost, en->n_active + 1, now), now) <
           n_in_time(en, t->client, cost_pace(&en->cost, en->n_active, now), now);
}

static void admit(struct shoal_engine *en)
{
    for (struct shoal_task **at; (at = fair_best(&en->fair));) {
        struct shoal_task *t = *at;
        if (is_too_late(en, t)) {
            queue_take(en, at);
            finish(en, t, SHOAL_FINISH_ERROR, SHOAL_EDEADLINE);
            continue;
        }
        if (would_delay(en, t))
            return;
        /* t stays the first of its client, whatever is preempted for it */
        while (en->n_active == en->max_tasks || en->pages_reserved + t->need_pages > en->n_pages)
            if (!make_room(en, t))
                return;
        queue_take(en, at);
        if (!t->started_ns)
            t->started_ns = clock_ns();
        fair_begin(&en->fair, t);
        if (en->n_active == 0)
            en->shed_pause = SHED_PAUSE;
        en->pages_reserved += t->need_pages;
        uint32_t i = en->n_active++;
        for (; i > 0 && task_goes_before(t, en->active[i - 1]); i--)
            en->active[i] = en->active[i - 1];
        en->active[i] = t;
        for (t->slot = 0;
             en->slot_used[t->slot];) /* there are as many slots as active tasks: one is free */
            t->slot++;
        en->slot_used[t->slot] = true;
    }
}

/* Whether the logits of every token are needed: they are computed one by one. */
static bool scores_prompt(const struct shoal_task *t)
{
    return t->prompt_logprobs && t->n_scored + 1 < t->n_prompt;
}

/* Goes on from the last checkpoint among the pages that were just taken over, and returns those
 * behind it.  Where they end, other prompts have gone another way before: a checkpoint there will
 * serve the next one. */
static void adopt_state(struct shoal_engine *en, struct shoal_task *t, uint32_t n_had)
{
    const uint32_t n_found = t->n_pages;
    uint32_t state = STATES_NONE;
    while (t->n_pages > n_had &&
           (state = states_find(en->states, t->pages[t->n_pages - 1])) == STATES_NONE) {
        kv_pages_release(en->pages, t->pages[--t->n_pages]);
        if (t->n_computed <= t->n_prompt && t->n_shifted == 0)
            t->n_cached -= KERN_PAGE;
        t->n_computed -= KERN_PAGE;
    }
    t->n_published = t->n_pages;
    t->parts_at = n_found > t->n_pages ? n_found * KERN_PAGE : 0;
    if (t->n_pages == n_had)
        return;
    drop_state(en, t);
    states_hold(en->states, state);
    t->state_from = state;
}

/* Takes over whole pages that another task has computed.  The last token is always computed, for
 * its logits. */
static void adopt_pages(struct shoal_engine *en, struct shoal_task *t)
{
    const uint32_t n_had = t->n_pages;
    if (scores_prompt(t) || t->fresh)
        return;
    while (en->lm.info.pages_hold_kv && t->n_computed % KERN_PAGE == 0 &&
           t->n_computed / KERN_PAGE == t->n_pages && t->n_computed + KERN_PAGE < t->n_tokens) {
        uint32_t parent = t->n_pages ? t->pages[t->n_pages - 1] : KV_NO_PAGE;
        uint32_t page = kv_pages_find(en->pages, t->scope, parent, t->tokens + t->n_computed);
        if (page == KV_NO_PAGE)
            break;
        t->pages[t->n_pages++] = page;
        t->n_published = t->n_pages;
        t->n_computed += KERN_PAGE;
        if (t->n_computed <= t->n_prompt && t->n_shifted == 0)
            t->n_cached += KERN_PAGE;
    }
    if (en->states && t->n_pages > n_had)
        adopt_state(en, t, n_had);
}

/* Whether another run of this step computes the same page: then this task waits a step and finds
 * it.
 */
static bool being_computed(const struct shoal_engine *en, uint32_t n_runs,
                           const struct shoal_task *t)
{
    if (!en->lm.info.pages_hold_kv || t->fresh || t->n_computed % KERN_PAGE != 0 ||
        t->n_tokens - t->n_computed <= KERN_PAGE)
        return false;
    for (uint32_t i = 0; i < n_runs; i++) {
        const struct shoal_task *o = en->run_task[i];
        if (o->scope == t->scope && o->n_computed == t->n_computed && en->runs[i].n >= KERN_PAGE &&
            memcmp(o->tokens, t->tokens, (t->n_computed + KERN_PAGE) * sizeof(*t->tokens)) == 0)
            return true;
    }
    return false;
}

/* Tells how far the prompt is. */
static void report_progress(struct shoal_task *t)
{
    if (!t->progress || !t->event || task_generated(t) > 0 || t->n_computed > t->n_prompt)
        return;
    const struct shoal_event ev = {.size = sizeof(ev),
                                   .kind = SHOAL_EVENT_PROGRESS,
                                   .token = -1,
                                   .text = "",
                                   .prompt_tokens = t->n_prompt,
                                   .cached_tokens = t->n_cached,
                                   .computed_tokens = t->n_computed};
    t->reported = true;
    t->event(t->event_ctx, &ev);
}

/* Chooses the states of run i: where it goes on from, and a checkpoint at the end of the last page
 * that it fills, or where its prompt parts from others. */
static void add_states(struct shoal_engine *en, uint32_t i, const struct shoal_task *t)
{
    struct decoder_run *r = &en->runs[i];
    const uint32_t end = r->pos0 + r->n;
    const bool parts = t->parts_at > r->pos0 && t->parts_at <= end;
    /* the same prompt again would compute its last token: the checkpoint is before that one */
    const uint32_t last = !task_answers(t) && end == t->n_tokens ? end - 1 : end;
    const uint32_t at = parts ? t->parts_at : last / KERN_PAGE * KERN_PAGE;
    r->state = t->slot;
    r->state_from = t->state_from != STATES_NONE ? t->state_from : t->slot;
    if (at <= r->pos0)
        return;
    r->keep = states_take(en->states);
    r->keep_at = r->keep != STATES_NONE ? at - r->pos0 : 0;
}

/* Run i is computed, and its pages are published: keeps its checkpoint.  Those of a task replace
 * each other, so that long prompts and answers leave room, except where prompts end or part. */
static void keep_state(struct shoal_engine *en, uint32_t i, struct shoal_task *t)
{
    const struct decoder_run *r = &en->runs[i];
    const uint32_t at = r->pos0 + r->keep_at;
    if (!en->states)
        return;
    drop_state(en, t);
    if (r->keep_at == 0)
        return;
    const uint32_t page = t->pages[at / KERN_PAGE - 1];
    states_keep(en->states, r->keep, page);
    if (t->passing_page != KV_NO_PAGE && t->passing_page != page)
        states_cool(en->states, t->passing_page);
    const bool lasts = at == t->parts_at || (at <= t->n_prompt && t->n_prompt - at <= KERN_PAGE);
    t->passing_page = lasts ? KV_NO_PAGE : page;
}

/* Plans n tokens of t as run i; its pages were reserved at admission. */
static void add_run(struct shoal_engine *en, uint32_t i, struct shoal_task *t, uint32_t n)
{
    uint32_t end = t->n_computed + n;
    if (!t->reported)
        report_progress(t);
    while (t->n_pages * KERN_PAGE < end) {
        uint32_t page = kv_pages_take(en->pages);
        assert(page != KV_NO_PAGE);
        if (en->states)
            states_forget(en->states, page);
        t->pages[t->n_pages++] = page;
    }
    en->run_task[i] = t;
    en->run_slot[i] = t->slot;
    en->run_code[i] = 0;
    en->runs[i] =
        (struct decoder_run){.tokens = t->tokens + t->n_computed,
                             .n = n,
                             .pos0 = t->n_computed,
                             .pages = t->pages,
                             .n_logits_last = end == t->n_tokens || scores_prompt(t) ? 1 : 0,
                             .adapter = t->adapter ? t->adapter->matrices : NULL,
                             .adapter_scale = t->adapter_scale};
    if (en->states)
        add_states(en, i, t);
}

/* Extends the runs of the first n_runs tasks, which decode one token each, by guesses of what
 * follows.  Returns their tokens, at most `budget`. */
static uint32_t add_guesses(struct shoal_engine *en, uint32_t n_runs, uint32_t budget)
{
    uint32_t n_guessed = 0;
    const uint32_t most = en->lm.info.max_drafts < budget ? en->lm.info.max_drafts : budget;
    for (uint32_t i = 0; i < n_runs && n_guessed < most; i++) {
        struct shoal_task *t = en->run_task[i];
        const uint32_t to_come = t->max_tokens - task_generated(t);
        uint32_t room = t->capacity - t->n_tokens;
        room = to_come && to_come - 1 < room ? to_come - 1 : room;
        room = most - n_guessed < room ? most - n_guessed : room;
        if (!task_answers(t) || room == 0)
            continue;
        const uint32_t n = draft_propose(&t->draft, &en->draft_costs, t->tokens, t->n_tokens, room,
                                         n_runs + n_guessed);
        if (n == 0)
            continue;
        /* behind the last token, where sampled tokens replace them */
        memcpy(t->tokens + t->n_tokens, t->draft.tokens, n * sizeof(*t->tokens));
        add_run(en, i, t, 1 + n);
        en->runs[i].n_logits_last = 1 + n;
        n_guessed += n;
    }
    return n_guessed;
}

static uint32_t plan_step(struct shoal_engine *en)
{
    uint32_t n_runs = 0, budget = en->lm.info.max_batch, generating = 0;
    en->step_prefilled = 0;
    for (uint32_t i = 0; i < en->n_active; i++)
        adopt_pages(en, en->active[i]);
    for (uint32_t i = 0; i < en->n_active && budget > 0; i++)
        if (en->active[i]->n_tokens - en->active[i]->n_computed == 1) {
            add_run(en, n_runs++, en->active[i], 1);
            budget--;
            generating++;
        }
    en->step_guessed = en->lm.info.max_drafts ? add_guesses(en, n_runs, budget) : 0;
    budget -= en->step_guessed;
    for (uint32_t i = 0; i < en->n_active && budget > 0; i++) {
        struct shoal_task *t = en->active[i];
        const uint32_t left = t->n_tokens - t->n_computed;
        if (left > 1 && task_answers(t)) { /* forced tokens: no prompt may delay them */
            const uint32_t n = left < budget ? left : budget;
            add_run(en, n_runs++, t, n);
            budget -= n;
            generating++;
            en->step_prefilled += n - 1;
        }
    }
    uint32_t most = generating
                        ? (en->chunk + ENGINE_SHARED_CHUNK_PART - 1) / ENGINE_SHARED_CHUNK_PART
                        : en->chunk;
    budget = budget < most ? budget : most;
    fair_divide_prompts(&en->fair, en->active, en->n_active, budget);
    for (uint32_t i = 0; i < en->n_active && budget > 0; i++) {
        struct shoal_task *t = en->active[i];
        uint32_t left = t->n_tokens - t->n_computed, part = t->client->prompt_part;
        if (left <= 1 || task_answers(t) || part == 0 ||
            (!scores_prompt(t) && being_computed(en, n_runs, t)))
            continue;
        part = scores_prompt(t) ? 1 : part < budget ? part : budget;
        uint32_t n = left < part ? left : part;
        add_run(en, n_runs++, t, n);
        t->client->prompt_part -= n;
        budget -= n;
        if (scores_prompt(t)) /* it costs as much as decoding */
            generating++;
        else
            en->step_prefilled += n;
    }
    en->step_decoded = generating;
    atomic_store_explicit(&en->pages_free, kv_pages_free(en->pages), memory_order_relaxed);
    return n_runs;
}

static void publish_pages(struct shoal_engine *en, struct shoal_task *t)
{
    while (en->lm.info.pages_hold_kv && (t->n_published + 1) * KERN_PAGE <= t->n_computed) {
        uint32_t p = t->n_published++;
        uint32_t parent = p ? t->pages[p - 1] : KV_NO_PAGE;
        t->pages[p] = kv_pages_publish(en->pages, t->scope, t->pages[p], parent,
                                       t->tokens + (size_t)p * KERN_PAGE);
    }
}

/* The answer has ended: sends the held-back text. */
static void send_rest(struct shoal_task *t)
{
    size_t rest = text_out_flush(&t->text);
    struct shoal_event last = {.size = sizeof(last),
                               .kind = SHOAL_EVENT_TOKEN,
                               .token = -1,
                               .text = buf_str(&t->text.pending),
                               .text_bytes = rest,
                               .last = true};
    if (rest > 0 && t->event)
        t->event(t->event_ctx, &last);
}

/* The tokens that a task's constraint allows next. true: none, and the task has ended.
 */
static bool constrain(struct shoal_engine *en, struct shoal_task *t, struct constraint_set *set)
{
    const uint32_t from = t->n_prompt - t->n_continued;
    *set = (struct constraint_set){NULL, 0, -1};
    if (!t->constraint.c)
        return false;
    int rc = constraint_run_allowed(&t->constraint, t->tokens + from, t->n_tokens - from,
                                    t->text.stream.strip_space, set);
    if (rc == 0 && set->n > 0)
        return false;
    if (rc == 0)
        send_rest(t);
    finish(en, t, rc < 0 ? SHOAL_FINISH_ERROR : SHOAL_FINISH_STOP, rc);
    return true;
}

/* How many of the first tokens a shift keeps: whole pages, and at least half of the context is left
 * for what follows. */
static uint32_t kept_by_shift(const struct shoal_task *t)
{
    const uint32_t part = t->capacity / SHIFT_KEEPS, half = t->capacity / 2;
    uint32_t keep = t->n_prompt < part ? t->n_prompt : part;
    if (t->keep_tokens > 0) /* those that were asked for, and the rest of their last page */
        keep = t->keep_tokens < half ? t->keep_tokens + KERN_PAGE - 1 : half;
    return (keep < half ? keep : half) / KERN_PAGE * KERN_PAGE;
}

/* The context is full: the start of the prompt and the later half of the rest stay. Their pages are
 * of other positions now, so they are computed again, as those of any prompt with these tokens. */
static void shift(struct shoal_engine *en, struct shoal_task *t)
{
    const uint32_t keep = kept_by_shift(t);
    const uint32_t drop = (t->n_tokens - keep) / 2 / KERN_PAGE * KERN_PAGE;
    memmove(t->tokens + keep, t->tokens + keep + drop,
            (t->n_tokens - keep - drop) * sizeof(*t->tokens));
    t->n_tokens -= drop;
    t->n_shifted += drop;
    /* a recurrent state cannot go back: it begins again, or at a checkpoint that is found */
    const uint32_t stay = en->states ? 0 : keep;
    while (t->n_pages > stay / KERN_PAGE)
        kv_pages_release(en->pages, t->pages[--t->n_pages]);
    t->n_published = t->n_published < t->n_pages ? t->n_published : t->n_pages;
    t->n_computed = t->n_computed < stay ? t->n_computed : stay;
    t->passing_page = KV_NO_PAGE;
}

/* Adds a token to the answer, sends it, and ends the task if it was the last.  true: the task is
 * over. */
static bool add_token(struct shoal_engine *en, struct shoal_task *t,
                      const struct sampler_pick *pick)
{
    bool over = false;
    int rc = 0;
    if (t->constraint.c)
        rc = constraint_run_take(&t->constraint, pick->token, t->text.stream.strip_space, &over);
    if (rc < 0) {
        finish(en, t, SHOAL_FINISH_ERROR, rc);
        return true;
    }
    t->tokens[t->n_tokens++] = pick->token;
    const bool full =
        task_generated(t) == t->max_tokens || (t->n_tokens == t->capacity && !t->shifts);
    size_t show;
    bool stopped = text_out_push(&t->text, pick->token, &show);
    if ((full || over) && !stopped)
        show = text_out_flush(&t->text);
    struct shoal_event ev = {.size = sizeof(ev),
                             .kind = SHOAL_EVENT_TOKEN,
                             .token = pick->token,
                             .text = buf_str(&t->text.pending),
                             .text_bytes = show,
                             .logprob = pick->logprob,
                             .top = pick->top,
                             .n_top = pick->n_top,
                             .last = stopped || full || over};
    if (t->event)
        t->event(t->event_ctx, &ev);
    text_out_shown(&t->text, show);
    if (stopped || full || over) {
        t->stopped = stopped;
        finish(en, t, stopped || over ? SHOAL_FINISH_STOP : SHOAL_FINISH_LENGTH, 0);
        return true;
    }
    if (t->n_tokens == t->capacity)
        shift(en, t);
    return false;
}

/* Adds forced tokens without a step for each: the next step computes all of them together. With
 * log-probabilities every token needs its own logits, and only the native engine computes the same
 * bits for tokens together as one by one. true: the task has ended. */
static bool add_forced(struct shoal_engine *en, struct shoal_task *t)
{
    struct sampler_pick pick = {.token = -1};
    struct constraint_set set;
    if (!t->constraint.c || !en->lm.info.pages_hold_kv || t->sampling.logprobs ||
        t->sampling.n_logprobs > 0)
        return false;
    for (uint32_t i = 1; i < en->chunk; i++) {
        if (constrain(en, t, &set))
            return true;
        if (set.only < 0)
            return false;
        pick.token = set.only;
        if (add_token(en, t, &pick))
            return true;
    }
    return false;
}

/* The next token of a task: forced by its constraint, or sampled. false: the logits are not
 * finite. */
static bool pick_token(struct shoal_engine *en, const struct shoal_task *t, const float *logits,
                       const struct constraint_set *set, struct sampler_pick *pick)
{
    if (set->only < 0) {
        const uint32_t n_generated = task_generated(t) + t->n_continued;
        const bool picked = sampler_run(en->sampler, pick, logits, &t->sampling, set->bits,
                                        t->tokens, t->n_tokens, n_generated);
        if (picked && t->drawn_logprobs && t->sampling.logprobs)
            sampler_score_drawn(en->sampler, pick, logits, &t->sampling, set->bits, t->tokens,
                                t->n_tokens, n_generated);
        return picked;
    }
    *pick = (struct sampler_pick){.token = set->only};
    if (t->drawn_logprobs && t->sampling.logprobs) /* no other was possible */
        pick->top[pick->n_top++] = (struct shoal_logprob){set->only, 0.0f};
    else if (t->sampling.logprobs || t->sampling.n_logprobs > 0)
        sampler_score(en->sampler, pick, logits, &t->sampling, set->only);
    return isfinite(logits[set->only]);
}

/* Samples a token, sends it, and ends the task if it was the last.  true: the task has ended. */
static bool take_token(struct shoal_engine *en, struct shoal_task *t, const float *logits)
{
    struct sampler_pick pick;
    struct constraint_set set;
    if (constrain(en, t, &set))
        return true;
    if (!pick_token(en, t, logits, &set, &pick)) {
        finish(en, t, SHOAL_FINISH_ERROR, SHOAL_ENOTFINITE);
        return true;
    }
    if (!t->first_token_ns) {
        t->first_token_ns = clock_ns();
        cost_saw_prompt(&en->cost, t->first_token_ns, t->n_prompt, t->n_cached);
    }
    /* a constraint allows the end only where its text may end */
    if ((!t->ignore_end || t->constraint.c) && tokenizer_is_eog(en->tokenizer, pick.token)) {
        send_rest(t);
        finish(en, t, SHOAL_FINISH_STOP, 0);
        return true;
    }
    return add_token(en, t, &pick) || add_forced(en, t);
}

/* The logits after a token of the prompt say how likely the next one was. true: the task has
 * ended.
 */
static bool take_score(struct shoal_engine *en, struct shoal_task *t, const float *logits)
{
    struct sampler_pick pick;
    if (t->n_computed < t->n_prompt && t->n_computed > t->n_scored) { /* not before a pause */
        sampler_score(en->sampler, &pick, logits, &t->sampling, t->tokens[t->n_computed]);
        t->n_scored = t->n_computed;
        const struct shoal_event ev = {.size = sizeof(ev),
                                       .kind = SHOAL_EVENT_PROMPT,
                                       .token = pick.token,
                                       .text = "",
                                       .logprob = pick.logprob,
                                       .top = pick.top,
                                       .n_top = pick.n_top};
        if (t->event)
            t->event(t->event_ctx, &ev);
    }
    if (!t->prompt_only || t->n_computed + 1 < t->n_prompt)
        return false;
    finish(en, t, SHOAL_FINISH_LENGTH, 0);
    return true;
}

/* Tokens are computed: their pages can be found. */
static void saw_computed(struct shoal_engine *en, struct shoal_task *t, uint32_t n)
{
    t->n_computed += n;
    t->n_served += n;
    publish_pages(en, t);
    report_progress(t);
}

/* The results of a token and the guesses behind it: row j has the logits after guess j, which count
 * if the answer went on with the guesses so far.  true: the task has ended. */
static bool take_guesses(struct shoal_engine *en, uint32_t i, uint32_t row)
{
    struct shoal_task *t = en->run_task[i];
    const uint32_t n = t->draft.n, shifted = t->n_shifted, base = t->n_computed;
    const struct draft guess = t->draft;
    uint32_t right = 0;
    en->n_guessed += n;
    for (uint32_t j = 0; j <= n; j++) {
        if (j > 0 && (t->n_shifted != shifted || base + j >= t->n_tokens ||
                      t->tokens[base + j] != guess.tokens[j - 1]))
            break;
        right = j;
        en->n_guessed_right += j > 0;
        saw_computed(en, t, 1);
        if (t->n_computed == t->n_tokens &&
            take_token(en, t, en->lm.ops->logits(en->lm.impl, row + j)))
            return true;
    }
    draft_saw(&t->draft, right);
    return false;
}

/* Handles the result of run i: its tokens are computed and, with logits, the next is sampled.  row:
 * the first of its rows of logits. */
static void take_run(struct shoal_engine *en, uint32_t i, uint32_t row)
{
    struct shoal_task *t = en->run_task[i];
    uint32_t at = 0, need = t->need_pages; /* t may be freed after its last token */
    bool over = false;
    while (en->active[at] != t)
        at++;
    if (en->run_code[i] < 0) {
        if (en->states && en->runs[i].keep_at)
            states_give_back(en->states, en->runs[i].keep);
        finish(en, t, SHOAL_FINISH_ERROR, en->run_code[i]);
        over = true;
    } else if (en->runs[i].n_logits_last > 1) {
        over = take_guesses(en, i, row);
    } else {
        const float *logits =
            en->runs[i].n_logits_last ? en->lm.ops->logits(en->lm.impl, row) : NULL;
        saw_computed(en, t, en->runs[i].n);
        keep_state(en, i, t);
        over = logits && t->prompt_logprobs && task_generated(t) == 0 && take_score(en, t, logits);
        over = over || (logits && t->n_computed == t->n_tokens && take_token(en, t, logits));
    }
    if (over)
        forget_active(en, at, need);
}

/* Publishes the remaining work of the active tasks, for estimates. */
static void publish_load(struct shoal_engine *en)
{
    struct engine_load *l = &en->load;
    uint64_t prompt = 0, decode = 0;
    for (uint32_t i = 0; i < en->n_active; i++) {
        const struct shoal_task *t = en->active[i];
        uint32_t generated = task_generated(t);
        prompt += !task_answers(t) && t->n_prompt > t->n_computed ? t->n_prompt - t->n_computed : 0;
        decode += cost_remaining_tokens(&en->cost, generated, t->expected, t->longest);
    }
    atomic_store_explicit(&l->n_active, en->n_active, memory_order_relaxed);
    atomic_store_explicit(&l->active_prompt, prompt, memory_order_relaxed);
    atomic_store_explicit(&l->active_decode, decode, memory_order_relaxed);
}

/* Learns from the time of the last step.  Guesses are no prompts, and a step that has them is not
 * what a step costs: the model of costs does not see it, unless none other was seen for long. */
static void saw_step(struct shoal_engine *en, uint64_t now)
{
    const struct cost_time took = run_watch_took(&en->watch, now);
    if (en->step_prefilled == 0)
        draft_saw_step(&en->draft_costs, en->step_decoded + en->step_guessed, took.ns);
    if (en->step_guessed == 0 || ++en->guessed_steps % GUESSED_STEPS == 0)
        cost_saw_step(&en->cost, now, took, en->step_decoded, en->step_prefilled);
}

/* The model lost its keys and values: every task computes its tokens again, and goes on with the
 * next one. */
static void start_over(struct shoal_engine *en)
{
    while (en->n_active > 0)
        preempt(en, en->n_active - 1);
    kv_pages_forget_all(en->pages);
}

static void take_results(struct shoal_engine *en)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < en->n_runs; i++) {
        take_run(en, i, row);
        row += en->runs[i].n_logits_last;
    }
}

/* Handles the results of the last step and plans the next; false: nothing is left to compute. */
static bool next_step(void *engine, struct lm_pass *pass)
{
    struct shoal_engine *en = engine;
    uint64_t now = clock_ns();
    const bool lost = en->n_runs > 0 && en->run_code[0] == LM_LOST;
    if (en->n_runs > 0 && !lost)
        saw_step(en, now);
    en->files_checked = false;
    run_watch_begin(&en->watch, now); /* events and planning are part of the next step */
    if (lost)
        start_over(en);
    else
        take_results(en);
    en->n_runs = 0;
    if ((en->n_active == 0 && !fair_best(&en->fair)) || !queue_receive(en)) {
        publish_load(en);
        return false;
    }
    page_exchange_run(en); /* before the tasks that its pages came for */
    sweep(en);
    admit(en);
    en->n_runs = plan_step(en);
    if (en->lm.ops->urgency && en->n_active > 0) { /* the best task is first, but for what is due */
        uint32_t i = 0;
        while (i + 1 < en->n_active && en->active[i]->due)
            i++;
        en->lm.ops->urgency(en->lm.impl, en->active[i]->priority, en->active[i]->deadline_ns);
    }
    publish_load(en);
    *pass = (struct lm_pass){en->runs, en->run_slot, en->run_code, en->n_runs};
    return en->n_runs > 0;
}

void *scheduler_main(void *engine)
{
    struct shoal_engine *en = engine;
    while (queue_receive(en)) {
        page_exchange_run(en);
        en->lm.ops->passes(en->lm.impl, next_step, en);
    }
    page_exchange_end(en);
    while (en->n_active > 0) {
        struct shoal_task *t = en->active[0];
        drop_active(en, 0);
        finish(en, t, SHOAL_FINISH_ERROR, SHOAL_ECANCELLED);
    }
    for (struct shoal_task **at; (at = fair_best(&en->fair));) {
        struct shoal_task *t = *at;
        queue_take(en, at);
        finish(en, t, SHOAL_FINISH_ERROR, SHOAL_ECANCELLED);
    }
    return NULL;
}
