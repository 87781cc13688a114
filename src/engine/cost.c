/* cost.c - see cost.h. */
#include "engine/cost.h"

#include <math.h>

#include "base/work_time.h"

#define MEMORY 8u       /* a new sample counts for an eighth, once there are this many */
#define LONG_MEMORY 32u /* for values that vary much between samples: lengths, the pace */
#define MIN_PREFILL 16u /* a shorter prompt measures the step rather than the prompt */
#define SPREADS 2.0     /* an unusually long answer exceeds the mean by this many deviations */
#define MIN_PART 0.05   /* smallest share of a mixed step for decoding and for prefill */
#define BEST_KEPT_NS 60000000000.0 /* the best recent value rises in this time */
#define BEST_STEP_NS 1000000000u   /* a measurement speaks for no more than this */
#define FAR 8.0               /* times: what is further from the usual value needs an explanation */
#define MIN_RAN 8u            /* a process that works runs for at least this part of the time */
#define MAX_ODD 3u            /* odd measurements in a row: from this one on they teach */
#define HALVED_NS 250000000.0 /* what is told of an old value halves in this time */
#define MAX_ERROR 4.0         /* a worse prediction is no worse */
#define SHARE_NS 50000000u    /* between two shares of stolen time */
#define MAX_STOLEN 0.95       /* however many others there are, the machine does not stand still */

struct view {          /* which figures count */
    uint64_t since_ns; /* those measured from then on */
    bool best;         /* the best recent ones */
};
static const struct view ever = {.since_ns = 0};

static double read_mean(struct cost_mean *m, struct view v)
{
    uint64_t at = atomic_load_explicit(&m->at_ns, memory_order_relaxed);
    if (at == 0 || at < v.since_ns)
        return 0.0;
    return atomic_load_explicit(v.best ? &m->best : &m->value, memory_order_relaxed);
}

static bool is_stale(struct cost_mean *m, uint64_t now_ns)
{
    uint64_t at = atomic_load_explicit(&m->at_ns, memory_order_relaxed);
    return at == 0 || now_ns > at + COST_FRESH_NS;
}

/* For choosing between replicas: an old value returns to the best recent one. */
static double told(struct cost_mean *m, uint64_t now_ns)
{
    uint64_t at = atomic_load_explicit(&m->at_ns, memory_order_relaxed);
    double value = read_mean(m, ever), best = atomic_load_explicit(&m->best, memory_order_relaxed);
    if (!is_stale(m, now_ns) || value <= best)
        return value;
    value *= exp2(-(double)(now_ns - at - COST_FRESH_NS) / HALVED_NS);
    return value > best ? value : best;
}

static void keep_best(struct cost_mean *m, uint64_t now_ns, double value)
{
    double best = atomic_load_explicit(&m->best, memory_order_relaxed);
    uint64_t at = atomic_load_explicit(&m->at_ns, memory_order_relaxed);
    uint64_t ns = now_ns > at ? now_ns - at : 0;
    if (at > 0 && value > best)
        value =
            best + (value - best) * (double)(ns < BEST_STEP_NS ? ns : BEST_STEP_NS) / BEST_KEPT_NS;
    atomic_store_explicit(&m->best, value, memory_order_relaxed);
}

/* An old value is replaced, a young one moves towards the new figure: by half at the second, a
 * third at the third, and so on, so that one odd figure at the beginning does not stay. */
static void add_to(struct cost_mean *m, uint64_t now_ns, double value, uint32_t memory)
{
    uint32_t n = is_stale(m, now_ns) ? 0 : atomic_load_explicit(&m->n, memory_order_relaxed);
    double old = atomic_load_explicit(&m->value, memory_order_relaxed);
    if (n > 0)
        value = old + (value - old) / (n + 1);
    atomic_store_explicit(&m->value, value, memory_order_relaxed);
    keep_best(m, now_ns, value);
    atomic_store_explicit(&m->n, n + 1 < memory ? n + 1 : memory - 1, memory_order_relaxed);
    atomic_store_explicit(&m->at_ns, now_ns ? now_ns : 1, memory_order_relaxed);
}

static void add(struct cost_mean *m, uint64_t now_ns, double value)
{
    add_to(m, now_ns, value, MEMORY);
}

/* The same for the time of some work: much less than before shows that the old value is wrong. */
static void add_time(struct cost_mean *m, uint64_t now_ns, double ns)
{
    if (read_mean(m, ever) > FAR * ns)
        atomic_store_explicit(&m->n, 0, memory_order_relaxed);
    add(m, now_ns, ns);
}

static uint32_t batch_of(uint32_t n)
{
    uint32_t i = 0;
    while (i + 1 < COST_BATCHES && n > 1u << i)
        i++;
    return i;
}

/* A batch larger than any measured is assumed to cost no more: the first to try it measures it.
 * Says nothing about smaller ones. */
static double newer_than(struct cost_mean means[COST_BATCHES], uint32_t n, struct view v)
{
    for (uint32_t i = batch_of(n) + 1; i-- > 0;) {
        double ns = read_mean(&means[i], v);
        if (ns > 0.0)
            return ns;
    }
    return 0.0;
}

/* How many times longer a batch of one class takes than one of a smaller class, by the best recent
 * figures of both: what a batch costs more is a matter of the model and the machine, and stays true
 * when both were measured long ago. At most as many times as it is larger; 1: it was never tried.
 */
static double batch_ratio(struct cost_mean means[COST_BATCHES], uint32_t larger, uint32_t smaller)
{
    const struct view best = {.best = true};
    const double a = read_mean(&means[larger], best), b = read_mean(&means[smaller], best);
    const double most = (double)(1u << (larger - smaller)),
                 ratio = a > 0.0 && b > 0.0 ? a / b : 1.0;
    return ratio < 1.0 ? 1.0 : ratio > most ? most : ratio;
}

/* A batch size without recent measurements is priced by those of a smaller one: after a slow
 * moment, requests that would need it would otherwise be refused forever. */
static double by_batch(struct cost_mean means[COST_BATCHES], uint32_t n, struct view v,
                       uint64_t now_ns)
{
    const struct view young = {now_ns - COST_FRESH_NS, v.best};
    const uint32_t own = batch_of(n);
    for (uint32_t i = own + 1; now_ns > COST_FRESH_NS && i-- > 0;) {
        const double fresh = read_mean(&means[i], young);
        if (fresh > 0.0)
            return fresh * batch_ratio(means, own, i);
    }
    return newer_than(means, n, v);
}

/* ---- stolen time ---- */

/* The median of the recent shares. */
static double stolen(struct cost *c, uint64_t now_ns)
{
    double shares[COST_SHARES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < COST_SHARES; i++) {
        const uint64_t at = atomic_load_explicit(&c->stolen[i].at_ns, memory_order_relaxed);
        const double x = atomic_load_explicit(&c->stolen[i].value, memory_order_relaxed);
        uint32_t k = n;
        if (at == 0 || now_ns > at + COST_FRESH_NS)
            continue;
        for (; k > 0 && shares[k - 1] > x; k--)
            shares[k] = shares[k - 1];
        shares[k] = x;
        n++;
    }
    return n == 0 ? 0.0 : (shares[(n - 1) / 2] + shares[n / 2]) / 2.0;
}

/* How many times longer work takes beside the other programs of the machine. */
static double slowed(struct cost *c, uint64_t now_ns)
{
    return 1.0 / (1.0 - stolen(c, now_ns));
}

/* The part of the time that was the process's own work; the rest is remembered apart. */
static double own_work(struct cost *c, uint64_t now_ns, struct cost_time took)
{
    const double share = took.stolen < MAX_STOLEN ? took.stolen : MAX_STOLEN;
    const struct cost_share *last = &c->stolen[(c->n_stolen + COST_SHARES - 1) % COST_SHARES];
    const uint64_t at = atomic_load_explicit(&last->at_ns, memory_order_relaxed);
    if (at == 0 || now_ns >= at + SHARE_NS) {
        struct cost_share *s = &c->stolen[c->n_stolen++ % COST_SHARES];
        atomic_store_explicit(&s->value, share, memory_order_relaxed);
        atomic_store_explicit(&s->at_ns, now_ns ? now_ns : 1, memory_order_relaxed);
    }
    return (double)took.ns * (1.0 - share);
}

/* ---- learning ---- */

/* Whether the process stood still: it hardly ran, and took far longer than usual (0: unknown). */
static bool is_odd(struct cost *c, struct cost_time took, double own_ns, double usual)
{
    bool odd = took.ns > COST_LONG_NS && took.ran_ns < took.ns / MIN_RAN && own_ns > FAR * usual;
    c->n_odd = odd ? c->n_odd + 1 : 0;
    return odd && c->n_odd < MAX_ODD;
}

/* Usual time of a step; 0: unknown.  A batch that is larger than any measured so far takes at most
 * as many times longer as it is larger. */
static double usual_step(struct cost *c, uint32_t n_decoded, uint32_t n_prefilled)
{
    double decode = 0.0, prefill = read_mean(&c->prefill, ever) * n_prefilled;
    const uint32_t own = batch_of(n_decoded);
    for (uint32_t i = own + 1; n_decoded > 0 && decode <= 0.0 && i-- > 0;)
        decode = read_mean(&c->step[i], ever) * (double)(1u << (own - i));
    bool known = (n_decoded == 0 || decode > 0.0) && (n_prefilled == 0 || prefill > 0.0);
    return known ? decode + prefill : 0.0;
}

/* A step that decodes and prefills: its time is split by the costs so far. If one is unknown, it
 * gets the rest; if both are, they share it. */
static void saw_mixed(struct cost *c, uint64_t now_ns, double ns, uint32_t n_decoded,
                      uint32_t n_prefilled)
{
    double decode = newer_than(c->step, n_decoded, ever),
           prefill = read_mean(&c->prefill, ever) * n_prefilled;
    double part = decode > 0.0 && prefill > 0.0 ? decode / (decode + prefill)
                  : decode > 0.0                ? decode / ns
                  : prefill > 0.0               ? 1.0 - prefill / ns
                                                : 0.5;
    part = part < MIN_PART ? MIN_PART : part > 1.0 - MIN_PART ? 1.0 - MIN_PART : part;
    add_time(&c->step[batch_of(n_decoded)], now_ns, part * ns);
    add_time(&c->prefill, now_ns, (1.0 - part) * ns / n_prefilled);
}

void cost_saw_step(struct cost *c, uint64_t now_ns, struct cost_time took, uint32_t n_decoded,
                   uint32_t n_prefilled)
{
    const double ns = own_work(c, now_ns, took);
    if (is_odd(c, took, ns, usual_step(c, n_decoded, n_prefilled)))
        return;
    if (n_decoded > 0)
        add_to(&c->pace[batch_of(n_decoded)], now_ns, ns, LONG_MEMORY);
    if (n_prefilled > 0 && n_decoded > 0 && took.ns > 0)
        saw_mixed(c, now_ns, ns, n_decoded, n_prefilled);
    else if (n_decoded > 0)
        add_time(&c->step[batch_of(n_decoded)], now_ns, ns);
    else if (n_prefilled >= MIN_PREFILL || (n_prefilled > 0 && is_stale(&c->prefill, now_ns)))
        add_time(&c->prefill, now_ns, ns / n_prefilled);
}

void cost_saw_answer(struct cost *c, uint64_t now_ns, uint32_t n_tokens, bool ended)
{
    const double usual = read_mean(&c->length, ever), n = n_tokens > 0 ? n_tokens : 1.0;
    if (!ended && n <= usual)
        return;
    if (usual > 0.0)
        add_to(&c->spread, now_ns, n > usual ? n - usual : usual - n, LONG_MEMORY);
    add_to(&c->length, now_ns, n, LONG_MEMORY);
}

void cost_saw_prompt(struct cost *c, uint64_t now_ns, uint32_t n_tokens, uint32_t n_cached)
{
    if (n_tokens > 0)
        add(&c->reused, now_ns, (double)n_cached / n_tokens);
}

void cost_saw_units(struct cost *c, uint64_t now_ns, struct cost_time took, uint64_t units)
{
    const double n = units ? (double)units : 1.0, ns = own_work(c, now_ns, took);
    if (!is_odd(c, took, ns, read_mean(&c->unit, ever) * n))
        add_time(&c->unit, now_ns, ns / n);
}

void cost_saw_total(struct cost *c, uint64_t now_ns, double predicted_ns, uint64_t actual_ns)
{
    if (predicted_ns <= 0.0)
        return;
    double error = fabs((double)actual_ns - predicted_ns) / predicted_ns;
    add(&c->error, now_ns, error < MAX_ERROR ? error : MAX_ERROR);
}

/* ---- asking ---- */

static double expected(struct cost *c, uint32_t max_tokens, bool ignore_end, struct view v)
{
    const double learned =
        ignore_end ? 0.0 : read_mean(&c->length, (struct view){v.since_ns, false});
    return work_time_tokens(&work_time_refuse, learned, max_tokens);
}

/* The same for an unusually long answer. */
static double longest(struct cost *c, uint32_t max_tokens, bool ignore_end, struct view v)
{
    double n = expected(c, max_tokens, ignore_end, v), limit = max_tokens;
    if (ignore_end)
        return n;
    n += SPREADS * read_mean(&c->spread, (struct view){v.since_ns, false});
    return limit > 0.0 && limit < n ? limit : n;
}

static uint32_t whole(double n)
{
    return n < 1.0 ? 1 : n > 1e9 ? (uint32_t)1e9 : (uint32_t)n;
}

uint32_t cost_expected_tokens(struct cost *c, uint32_t max_tokens, bool ignore_end)
{
    return whole(expected(c, max_tokens, ignore_end, ever));
}

uint32_t cost_longest_tokens(struct cost *c, uint32_t max_tokens, bool ignore_end)
{
    return whole(longest(c, max_tokens, ignore_end, ever));
}

/* An answer that exceeds its expected length does not end with the next token: about one deviation
 * may be left. */
uint32_t cost_remaining_tokens(struct cost *c, uint32_t generated, uint32_t usual, uint32_t most)
{
    const uint32_t left = usual > generated ? usual - generated : 1;
    const uint32_t spread = most > usual ? whole(read_mean(&c->spread, ever)) : 1;
    return left > spread ? left : spread;
}

/* Tokens of a whole answer of the running tasks, which are half done on average if they resemble
 * the new one; if more is left, they are longer. */
static double whole_active(const struct cost_load *l, double length)
{
    if (l->n_active == 0 || l->decode_tokens < l->waiting_decode)
        return length;
    double left = (double)(l->decode_tokens - l->waiting_decode) / l->n_active;
    double most = left > length ? left : length;
    return 2.0 * left < most ? 2.0 * left : most;
}

/* The first token of an answer comes with its prompt. */
static void set_times(struct cost_estimate *x, const struct work_time_rates *r, double prompt,
                      double length, double most)
{
    const struct work_time_policy *p = &work_time_refuse;
    x->first_ns = work_time_of(p, r, prompt, 0).total_ns;
    x->total_ns = work_time_of(p, r, prompt, length - 1.0).total_ns;
    x->long_ns = work_time_of(p, r, prompt, most - 1.0).total_ns;
}

/* Time to the first token and to the end of the request, with the existing load. */
static void predict(struct cost *c, const struct cost_load *l, const struct cost_request *r,
                    struct view v, uint64_t now_ns, struct cost_estimate *x)
{
    const double choices = r->n_choices ? r->n_choices : 1;
    const double length = expected(c, r->max_tokens, r->ignore_end, v);
    const double ahead = (double)l->n_active + l->n_waiting, tasks = ahead + choices;
    const double most = l->max_active ? l->max_active : 1;
    const double batch = tasks < most ? tasks : most;
    const double step = by_batch(c->step, (uint32_t)batch, v, now_ns);
    double prefill = read_mean(&c->prefill, v), prompt = r->prompt_tokens;
    if (r->cached_tokens > 0)
        prompt -= r->cached_tokens < r->prompt_tokens ? r->cached_tokens : r->prompt_tokens;
    else
        prompt *= 1.0 - read_mean(&c->reused, (struct view){v.since_ns, false});
    if (l->n_active > 0 && l->shared_chunk > 0) /* each chunk waits for a step of the others */
        prefill += step / l->shared_chunk;
    struct work_time_rates rates = {.prefill_ns = prefill, .token_ns = step, .first_ns = step};
    if (tasks <= most) {
        rates.queue_ns = (double)l->prompt_tokens * prefill;
        set_times(x, &rates, prompt, length, length);
        return;
    }
    /* Tasks beyond the batch wait for others to end: on average one ends every answer time divided
     * by the number of running tasks. Interleaved prompts are part of the pace. */
    double pace = by_batch(c->pace, (uint32_t)batch, v, now_ns);
    double all = (double)l->waiting_decode + l->n_active * whole_active(l, length);
    rates.queue_ns = (tasks - most) * ((all + choices * length) / tasks) * pace / batch;
    rates.token_ns = pace;
    set_times(x, &rates, prompt, length, longest(c, r->max_tokens, r->ignore_end, v));
}

double cost_pace(struct cost *c, uint32_t n, uint64_t now_ns)
{
    return by_batch(c->pace, n, ever, now_ns) * slowed(c, now_ns);
}

struct cost_estimate cost_predict(struct cost *c, const struct cost_load *l,
                                  const struct cost_request *r, uint64_t now_ns)
{
    const struct cost_load nothing = {.max_active = l->max_active, .batch_units = l->batch_units};
    struct cost_estimate x = {.n_ahead = l->n_active + l->n_waiting,
                              .error = read_mean(&c->error, ever)};
    struct view v = ever;
    x.idle = x.n_ahead == 0 && l->units == 0;
    if (x.idle && now_ns > COST_FRESH_NS)
        v.since_ns = now_ns - COST_FRESH_NS;
    if (r->units > 0) {
        const struct work_time_policy *p = &work_time_refuse;
        const struct view best = {v.since_ns, true};
        const struct work_time_rates rates = {.prefill_ns = read_mean(&c->unit, v)};
        const struct work_time_rates quick = {.prefill_ns = read_mean(&c->unit, best)};
        /* tasks ahead may all have lower priority: they count beyond one batch */
        uint64_t all = r->units + (l->units > l->batch_units ? l->units : 0);
        x.alone_ns = work_time_of_units(p, &quick, (double)r->units).total_ns;
        x.first_ns = x.total_ns = x.long_ns = work_time_of_units(p, &rates, (double)all).total_ns;
    } else {
        struct cost_estimate alone = {.known = false};
        predict(c, l, r, v, now_ns, &x);
        v.best = true;
        predict(c, &nothing, r, v, now_ns, &alone);
        x.alone_ns = alone.total_ns;
    }
    const double times = slowed(c, now_ns);
    x.first_ns *= times;
    x.total_ns *= times;
    x.long_ns *= times;
    x.known = x.total_ns > 0.0;
    return x;
}

int cost_check(const struct cost_estimate *x, uint64_t deadline_ns, uint64_t now_ns, struct err *e)
{
    double left = deadline_ns > now_ns ? (double)(deadline_ns - now_ns) : 0.0;
    double need = x->alone_ns;
    if (!x->idle) {
        need =
            x->n_ahead > 0 ? work_time_sure(&work_time_refuse, x->total_ns, x->error) : x->total_ns;
        need = need > x->long_ns ? need : x->long_ns;
    }
    if (deadline_ns == 0 || (left > 0.0 && need <= left))
        return 0;
    need /= 1e6;
    left /= 1e6;
    return err_set(e, SHOAL_EDEADLINE, "needs about %.*f ms, %.*f ms remain", need < 10.0, need,
                   left < 10.0, left);
}

void cost_speed(struct cost *c, uint64_t now_ns, double *prefill_ns, double *token_ns)
{
    uint64_t newest = 0;
    const double times = slowed(c, now_ns);
    *prefill_ns = told(&c->prefill, now_ns) * times;
    *token_ns = 0.0;
    for (uint32_t i = 0; i < COST_BATCHES; i++) {
        uint64_t at = atomic_load_explicit(&c->step[i].at_ns, memory_order_relaxed);
        if (at > newest) {
            newest = at;
            *token_ns = told(&c->step[i], now_ns) * times;
        }
    }
}

/* As newer_than. */
static double told_step(struct cost *c, uint32_t n, uint64_t now_ns)
{
    for (uint32_t i = batch_of(n) + 1; i-- > 0;) {
        double ns = told(&c->step[i], now_ns);
        if (ns > 0.0)
            return ns;
    }
    return 0.0;
}

struct cost_telemetry cost_tell(struct cost *c, const struct cost_load *l, uint64_t now_ns)
{
    const struct cost_request usual = {.prompt_tokens = 0}; /* an answer of the learned length */
    const uint32_t most = l->max_active ? l->max_active : 1, ahead = l->n_active + l->n_waiting;
    const double times = slowed(c, now_ns);
    const double step = times * told_step(c, ahead + 1 < most ? ahead + 1 : most, now_ns);
    struct cost_telemetry t = {.prefill_ns = times * told(&c->prefill, now_ns),
                               .token_ns = step,
                               .unit_ns = times * told(&c->unit, now_ns),
                               .answer_tokens = read_mean(&c->length, ever),
                               .error = told(&c->error, now_ns),
                               .in_flight = ahead,
                               .parallel = most};
    struct cost_estimate x = {.known = false};
    predict(c, l, &usual, ever, 0, &x);
    x.first_ns *= times;
    t.queue_ns = ahead > 0 && x.first_ns - step > 0.0 ? x.first_ns - step : 0.0;
    if (l->n_active > 0 && l->shared_chunk > 0)
        t.prefill_ns += step / l->shared_chunk;
    if (l->units > l->batch_units) /* as in cost_predict */
        t.queue_ns += t.unit_ns * (double)l->units;
    return t;
}
