/* home_later_run.c - see home_later_run.h. */
#include "apps/home/home_later_run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "apps/home/gate/gate_plan.h"
#include "apps/home/home_carry.h"
#include "apps/home/home_denied.h"
#include "apps/home/site/home_things.h"

#define ARENA_BYTES ((size_t)4 << 20)

struct running { /* one entry */
    struct home_later_run *r;
    uint64_t id;
    const char *said, *by;
    bool confirmed; /* this very act was, when it was scheduled */
    struct arena arena;
    struct home_file *file;
    struct gate gate;
    struct home_draft draft;
    struct home_carry *deeds;
    struct carrying *list;
    uint32_t n_deeds;
    bool simulated;
    _Atomic uint32_t pending;
    pthread_mutex_t lock; /* of the arena */
};

struct carrying {
    struct running *x;
    struct home_carry *deed;
};

/* ---- carrying out --------------------------------------------------------------------------- */

static void running_free(struct running *x)
{
    home_file_unref(x->file);
    arena_fini(&x->arena);
    pthread_mutex_destroy(&x->lock);
    mem_free(x);
}

static void end(struct running *x, const char *result, const char *reason)
{
    home_later_end(x->r->later, x->id, result, reason);
    running_free(x);
}

static void on_added(void *ctx, int rc, const char *reason, uint64_t id)
{
    (void)ctx;
    (void)rc;
    (void)reason;
    (void)id;
}

/* "At 7 for 20 minutes": the end is scheduled when it begins. */
static void schedule_end(struct running *x)
{
    const struct home_carry_now now = {
        .ms = home_later_now_ms(x->r->later), .said = x->said, .by = x->by};
    struct home_later_entry entry;
    const char *denied;
    if (home_carry_end_of(&x->arena, &x->gate, x->draft.actions[0], &now, &entry, &denied) &&
        !denied && entry.action)
        home_later_add(x->r->later, &entry, on_added, NULL);
}

/* Nothing was sent to any thing. */
static bool out_of_reach(const struct running *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_deeds; i++) {
        if (!x->deeds[i].listed || x->deeds[i].result != HOME_SINK_NOT_CONNECTED)
            return false;
        n++;
    }
    return n > 0 && !x->simulated;
}

static void finish(struct running *x)
{
    const struct home_carry_done done = {
        .deeds = x->deeds, .n_deeds = x->n_deeds, .simulated = x->simulated, .schedules = true};
    home_carry_settle(&x->arena, x->r->table, &x->draft, &done, home_things_states(x->r->things));
    const char *result = ask_plan_text_of(x->draft.actions[0], "result"),
               *reason = ask_plan_text_of(x->draft.actions[0], "reason");
    if (result && strcmp(result, "failed") != 0)
        schedule_end(x);
    if (out_of_reach(x)) {
        home_later_postpone(x->r->later, x->id, reason);
        running_free(x);
        return;
    }
    end(x, x->arena.rc == 0 && result ? result : "failed",
        x->arena.rc == 0 ? reason : "out of memory");
}

static void part_done(struct running *x)
{
    if (atomic_fetch_sub_explicit(&x->pending, 1, memory_order_acq_rel) == 1)
        finish(x);
}

static void on_carried(void *ctx, enum home_sink_result result, const char *reason)
{
    struct carrying *c = ctx;
    struct running *x = c->x;
    c->deed->result = result;
    if (reason) {
        pthread_mutex_lock(&x->lock);
        c->deed->reason = arena_printf(&x->arena, "%s", reason);
        pthread_mutex_unlock(&x->lock);
    }
    part_done(x);
}

static void carry(struct running *x)
{
    struct home_sink *sink = home_things_sink(x->r->things);
    x->n_deeds = home_carry_deeds(&x->arena, &x->gate, &x->draft, &x->deeds);
    x->list = arena_zalloc_n(&x->arena, (size_t)x->n_deeds + 1, sizeof(*x->list));
    x->simulated = !sink;
    uint32_t n = x->list ? x->n_deeds : 0;
    for (uint32_t i = 0; i < n; i++)
        x->list[i] = (struct carrying){x, &x->deeds[i]};
    /* the extra one keeps x alive until the last was handed over */
    atomic_store_explicit(&x->pending, n + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        if (!home_carry_send(&x->gate, sink, &x->deeds[i], x->confirmed, on_carried, &x->list[i]))
            part_done(x);
    part_done(x);
}

void home_later_run_entry(void *ctx, const struct home_later_entry *entry)
{
    struct home_later_run *r = ctx;
    if (entry->kind != HOME_LATER_ACTION) {
        home_later_end(r->later, entry->id, "rang", NULL);
        return;
    }
    struct running *x = mem_zalloc(sizeof(*x));
    if (!x) {
        home_later_end(r->later, entry->id, "failed", "out of memory");
        return;
    }
    x->r = r;
    x->id = entry->id;
    arena_init(&x->arena, ARENA_BYTES);
    pthread_mutex_init(&x->lock, NULL);
    x->file = home_things_file(r->things);
    x->said = arena_printf(&x->arena, "%s", entry->said ? entry->said : "");
    x->by = arena_printf(&x->arena, "%s", entry->by ? entry->by : "");
    struct ask_plan_action *o =
        entry->action ? ask_plan_action_copy(entry->action, &x->arena) : NULL;
    if (!o || !home_draft_reserve(&x->arena, &x->draft)) {
        end(x, "failed", "the entry cannot be read");
        return;
    }
    x->confirmed = entry->confirmed;
    x->gate = (struct gate){r->table, x->file, home_things_states(r->things)};
    struct gate_verdict v = gate_plan_check(&x->arena, &x->gate, o, entry->confirmed);
    const char *why = home_denied(&x->arena, r->table, &v);
    if (why || x->arena.rc < 0) {
        end(x, "failed", why ? why : "out of memory");
        return;
    }
    uint32_t at = 0;
    while (at < o->n_fields && strcmp(o->fields[at].key, "result") != 0)
        at++;
    o->n_fields += at == o->n_fields;
    o->fields[at] = (struct ask_plan_field){.key = "result", .text = "done"};
    x->draft.actions[x->draft.n_actions++] = o;
    carry(x);
}
