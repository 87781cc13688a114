/* fair.c - see fair.h. */
#include "engine/fair.h"

#include "base/mem.h"
#include "engine/job.h"
#include "engine/task.h"

#define PLACES_PER_FREE 7u /* so one client gets at most seven eighths of a queue */
#define LOWER_SHARE 0.1    /* of the tokens, for classes below those that run */
#define GRANT 256u         /* tokens at most that are due at a time */
#define MUCH_SHORTER 4.0   /* times */

void fair_init(struct fair *f)
{
    f->nobody.weight = f->nobody.asked_weight = 1.0;
}

void fair_fini(struct fair *f)
{
    for (uint32_t i = 0; i < f->n_clients; i++)
        mem_free(f->clients[i]);
    f->n_clients = 0;
}

/* ---- under the lock ---- */

/* Reuses an idle client for another id; NULL: all are in use. */
static struct fair_client *reuse(struct fair *f)
{
    struct fair_client *oldest = NULL;
    for (uint32_t i = 0; i < f->n_clients; i++)
        if (f->clients[i]->n_tasks == 0 && (!oldest || f->clients[i]->used < oldest->used))
            oldest = f->clients[i];
    if (oldest) /* the engine's thread touches only clients with tasks */
        *oldest = (struct fair_client){.n_tasks = 0};
    return oldest;
}

static struct fair_client *find(struct fair *f, uint64_t id)
{
    struct fair_client *c;
    for (uint32_t i = 0; i < f->n_clients; i++)
        if (f->clients[i]->id == id)
            return f->clients[i];
    if (f->n_clients == FAIR_MAX_CLIENTS)
        c = reuse(f);
    else if ((c = mem_zalloc(sizeof(*c))))
        f->clients[f->n_clients++] = c;
    if (c)
        c->id = id;
    return c;
}

struct fair_client *fair_enter(struct fair *f, uint64_t id, float weight, int32_t priority)
{
    struct fair_client *c = id == 0 ? NULL : find(f, id);
    if (!c)
        c = &f->nobody;
    else
        c->asked_weight = (double)weight;
    c->priority = priority;
    c->used = f->n_entered++;
    c->n_tasks++;
    return c;
}

void fair_leave(struct fair_client *c)
{
    c->n_tasks--;
}

bool fair_has_place(const struct fair_client *c, uint32_t n_waiting, uint32_t max_queue)
{
    return n_waiting < max_queue &&
           (c->id == 0 || c->n_waiting < (uint64_t)PLACES_PER_FREE * (max_queue - n_waiting));
}

/* The share of c's waiting work that goes before the next task of `own`, from 0 to 1. */
static double part_ahead(const struct fair_client *c, const struct fair_client *own,
                         double own_weight, int32_t priority)
{
    if (c == own || c->priority > priority)
        return 1.0;
    if (c->priority < priority)
        return 0.0;
    double n = (1.0 + (own ? own->n_waiting : 0)) * c->asked_weight / own_weight;
    return n < c->n_waiting ? n / c->n_waiting : 1.0;
}

struct ahead {
    double weights, own_weight; /* weights of all clients with tasks, and of the requesting one */
    double n_waiting, prompt, decode;
    uint32_t own_active;
};

static void add_ahead(struct ahead *a, const struct fair_client *c, const struct fair_client *own,
                      int32_t priority)
{
    if (c->n_tasks == 0)
        return;
    double part = c->n_waiting > 0 ? part_ahead(c, own, a->own_weight, priority) : 0.0;
    a->weights += c == own ? 0.0 : c->asked_weight;
    a->n_waiting += part * c->n_waiting;
    a->prompt += part * (double)c->waiting_prompt;
    a->decode += part * (double)c->waiting_decode;
}

void fair_reduce(const struct fair *f, const struct fair_who *who, struct fair_load *l)
{
    const struct fair_client *own = who->client == 0 ? &f->nobody : NULL;
    for (uint32_t i = 0; i < f->n_clients && !own; i++)
        own = f->clients[i]->id == who->client ? f->clients[i] : NULL;
    struct ahead a = {.own_weight = (double)task_weight(who->client, who->weight)};
    a.own_active = own ? own->n_tasks - own->n_waiting : 0;
    a.weights = a.own_weight;
    add_ahead(&a, &f->nobody, own, who->priority);
    for (uint32_t i = 0; i < f->n_clients; i++)
        add_ahead(&a, f->clients[i], own, who->priority);
    l->n_waiting = (uint32_t)a.n_waiting;
    l->waiting_prompt = (uint64_t)a.prompt;
    l->waiting_decode = (uint64_t)a.decode;
    /* Running tasks of others make room up to the client's share. */
    double share = (double)l->max_active * a.own_weight / a.weights;
    share = share < 1.0 ? 1.0 : (double)(uint32_t)share;
    double most = (double)l->max_active - share + a.own_active;
    if (a.own_active < share && l->n_active > most && most >= 0.0) {
        double part = most / l->n_active;
        l->active_prompt = (uint64_t)((double)l->active_prompt * part);
        l->active_decode = (uint64_t)((double)l->active_decode * part);
        l->n_active = (uint32_t)most;
    }
}

/* ---- the engine's thread ---- */

static void join(struct fair *f, struct fair_client *c)
{
    if (c->present)
        return;
    c->present = true;
    f->present[f->n_present++] = c;
    if (c->clock < f->now)
        c->clock = f->now;
}

static void part(struct fair *f, struct fair_client *c)
{
    uint32_t i = 0;
    if (c->waiting || c->n_active > 0)
        return;
    while (f->present[i] != c)
        i++;
    f->present[i] = f->present[--f->n_present];
    c->present = false;
}

/* Tokens still to be computed for t. */
static double expected_tokens(const struct shoal_task *t)
{
    if (t->job)
        return t->job->cost > 0 ? t->job->cost : 1.0;
    uint32_t generated = task_generated(t);
    return (double)t->n_prompt + (t->expected > generated ? t->expected - generated : 1);
}

/* Whether t, which came later and is shorter, may go before e: not if e has let enough pass. */
static bool may_overtake(const struct shoal_task *t, const struct shoal_task *e)
{
    const double own = expected_tokens(t), all = expected_tokens(e);
    return own < all && e->overtaken + own <= all;
}

/* Whether e, which waits, stays before t. */
static bool stays_ahead(const struct shoal_task *e, const struct shoal_task *t)
{
    const int rank = task_rank(e, t);
    if (rank != 0)
        return rank < 0;
    if (e->serial < t->serial)
        return !may_overtake(t, e);
    return MUCH_SHORTER * expected_tokens(e) <= expected_tokens(t); /* t was preempted for it */
}

void fair_add(struct fair *f, struct shoal_task *t)
{
    struct shoal_task **at = &t->client->waiting;
    t->client->weight = t->weight;
    join(f, t->client);
    for (struct shoal_task **i = at; *i; i = &(*i)->next)
        if (stays_ahead(*i, t))
            at = &(*i)->next;
    t->next = *at;
    *at = t;
    for (struct shoal_task *e = t->next; e && task_rank(e, t) == 0; e = e->next)
        if (e->serial < t->serial)
            e->overtaken += expected_tokens(t);
}

static bool client_goes_before(const struct fair_client *a, const struct fair_client *b)
{
    if (task_outranks(a->waiting, b->waiting) || task_outranks(b->waiting, a->waiting))
        return task_outranks(a->waiting, b->waiting);
    return a->clock < b->clock ||
           (a->clock <= b->clock && task_goes_before(a->waiting, b->waiting));
}

struct shoal_task **fair_best(struct fair *f)
{
    struct fair_client *best = NULL;
    for (uint32_t i = 0; i < f->n_present; i++) {
        struct fair_client *c = f->present[i];
        if (c->waiting && (!best || client_goes_before(c, best)))
            best = c;
    }
    return best ? &best->waiting : NULL;
}

static bool is_next(const struct shoal_task *t, const struct shoal_task *other)
{
    const uint64_t a = t->client->turn, b = other->client->turn;
    return a != b ? a < b : t->serial < other->serial;
}

/* The link to the task below `floor` whose turn it is; NULL: none, or one is due. */
static struct shoal_task **next_below(const struct fair *f, int32_t floor)
{
    struct shoal_task **next = NULL;
    for (uint32_t i = 0; i < f->n_present; i++)
        for (struct shoal_task **at = &f->present[i]->waiting; *at; at = &(*at)->next) {
            if ((*at)->due)
                return NULL;
            if ((*at)->priority < floor && (!next || is_next(*at, *next)))
                next = at;
        }
    return next;
}

/* t is no longer due: what it took beyond the grant is missing from the next. */
static void settle(struct fair *f, struct shoal_task *t)
{
    if (t->due && t->n_served > GRANT)
        f->put_by -= t->n_served - GRANT;
    t->due = false;
}

void fair_end_due(struct fair *f, struct shoal_task **active, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (active[i]->due && active[i]->n_computed >= active[i]->reached + GRANT)
            settle(f, active[i]);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && task_goes_before(active[k], active[k - 1]); k--) {
            struct shoal_task *t = active[k];
            active[k] = active[k - 1];
            active[k - 1] = t;
        }
}

void fair_age(struct fair *f, struct shoal_task *const *active, uint32_t n, uint64_t tokens)
{
    int32_t floor = n > 0 ? active[0]->priority : 0;
    for (uint32_t i = 1; i < n; i++)
        floor = active[i]->priority < floor ? active[i]->priority : floor;
    if (n == 0)
        return; /* between two tasks */
    struct shoal_task **at = next_below(f, floor);
    if (!at) {
        f->put_by = f->put_by < 0.0 ? f->put_by : 0.0;
        return;
    }
    struct shoal_task *t = *at;
    double grant = expected_tokens(t);
    grant = grant < GRANT ? grant : GRANT;
    f->put_by += LOWER_SHARE * (double)tokens;
    if (f->put_by < grant)
        return;
    f->put_by -= grant;
    t->due = true;
    t->client->turn = ++f->n_due;
    *at = t->next;
    fair_add(f, t);
}

void fair_remove(struct fair *f, struct shoal_task **at)
{
    const struct shoal_task *t = *at;
    *at = t->next;
    part(f, t->client);
}

void fair_begin(struct fair *f, struct shoal_task *t)
{
    struct fair_client *c = t->client;
    join(f, c);
    if (c->clock > f->now)
        f->now = c->clock;
    t->charged = expected_tokens(t);
    t->n_served = 0;
    c->clock += t->charged / c->weight;
    c->n_active++;
    c->pages += t->need_pages;
}

void fair_end(struct fair *f, struct shoal_task *t)
{
    struct fair_client *c = t->client;
    if (t->n_computed > t->reached)
        t->reached = t->n_computed;
    settle(f, t);
    if (!t->job)
        c->clock += ((double)t->n_served - t->charged) / c->weight;
    c->n_active--;
    c->pages -= t->need_pages;
    part(f, c);
}

/* Tokens of t that are to be prefilled; one is decoding, and so are those of an answer. */
static uint32_t prompt_left(const struct shoal_task *t)
{
    uint32_t left = t->n_tokens - t->n_computed;
    return left > 1 && !task_answers(t) ? left : 0;
}

void fair_divide_prompts(const struct fair *f, struct shoal_task *const *active, uint32_t n,
                         uint32_t budget)
{
    double weights = 0.0;
    uint32_t rest = budget;
    for (uint32_t i = 0; i < f->n_present; i++) {
        f->present[i]->prompt_left = 0;
        f->present[i]->prompt_part = budget;
    }
    if (f->n_present < 2)
        return;
    for (uint32_t i = 0; i < n; i++)
        active[i]->client->prompt_left += prompt_left(active[i]);
    for (uint32_t i = 0; i < f->n_present; i++)
        weights += f->present[i]->prompt_left > 0 ? f->present[i]->weight : 0.0;
    for (uint32_t i = 0; i < f->n_present; i++) {
        struct fair_client *c = f->present[i];
        uint32_t part = c->prompt_left > 0 ? (uint32_t)(budget * c->weight / weights) : 0;
        c->prompt_part = part < c->prompt_left ? part : c->prompt_left;
        rest -= c->prompt_part;
    }
    /* unused parts go to the others, in the order of their tasks */
    for (uint32_t i = 0; i < n && rest > 0; i++) {
        struct fair_client *c = active[i]->client;
        uint32_t more = c->prompt_left - c->prompt_part;
        more = more < rest ? more : rest;
        c->prompt_part += more;
        rest -= more;
    }
}

/* The share of the engine taken by this many tasks and pages. */
static double usage(uint32_t n_tasks, uint32_t pages, uint32_t max_tasks, uint32_t n_pages)
{
    double tasks = (double)n_tasks / max_tasks, memory = (double)pages / n_pages;
    return tasks > memory ? tasks : memory;
}

/* The task of t's own client to preempt: t goes first and is much shorter. n: none. */
static uint32_t longer_of_client(const struct shoal_task *t, struct shoal_task *const *active,
                                 uint32_t n)
{
    uint32_t victim = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct shoal_task *v = active[i];
        if (v->client == t->client && v->priority == t->priority && task_rank(t, v) <= 0 &&
            may_overtake(t, v) && MUCH_SHORTER * expected_tokens(t) <= task_remaining(v) &&
            (victim == n || task_remaining(v) >= task_remaining(active[victim])))
            victim = i;
    }
    return victim;
}

/* The task of a client with more than its share, for one with less. n: none. */
static uint32_t above_share(const struct fair *f, const struct shoal_task *t,
                            struct shoal_task *const *active, uint32_t n, uint32_t max_tasks,
                            uint32_t n_pages)
{
    const struct fair_client *c = t->client;
    double weights = 0.0;
    uint32_t victim = n;
    if (f->n_present < 2)
        return n;
    for (uint32_t i = 0; i < f->n_present; i++)
        weights += f->present[i]->weight;
    if (c->n_active > 0 &&
        usage(c->n_active + 1, c->pages + t->need_pages, max_tasks, n_pages) > c->weight / weights)
        return n;
    for (uint32_t i = 0; i < n; i++) {
        const struct shoal_task *v = active[i];
        const struct fair_client *d = v->client;
        /* a client's last task stays, so that two clients do not preempt each other in turn
         */
        if (d == c || v->priority > t->priority || v->due || d->n_active < 2 ||
            usage(d->n_active, d->pages, max_tasks, n_pages) <= d->weight / weights)
            continue;
        if (victim == n || task_remaining(v) >= task_remaining(active[victim]))
            victim = i;
    }
    return victim;
}

uint32_t fair_victim(const struct fair *f, const struct shoal_task *t,
                     struct shoal_task *const *active, uint32_t n, uint32_t max_tasks,
                     uint32_t n_pages)
{
    uint32_t victim = above_share(f, t, active, n, max_tasks, n_pages);
    if (victim < n || (victim = longer_of_client(t, active, n)) == n)
        return victim;
    active[victim]->overtaken += expected_tokens(t);
    return victim;
}
