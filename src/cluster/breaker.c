/* breaker.c - see breaker.h. */
#include "cluster/breaker.h"

#define MAX_FAILURES 2u          /* consecutive failures that open the breaker */
#define MIN_OPEN_NS 100000000ull /* 100 ms, doubled with every failure in a row */
#define MAX_SHIFT 7u             /* 12.8 s */

enum breaker_state breaker_state(const struct breaker *b, uint64_t now_ns)
{
    if (b->until_ns == 0)
        return BREAKER_CLOSED;
    return now_ns < b->until_ns ? BREAKER_OPEN : BREAKER_HALF_OPEN;
}

const char *breaker_state_name(enum breaker_state s)
{
    static const char *const names[] = {"closed", "open", "half open"};
    return names[s];
}

bool breaker_passes(const struct breaker *b, uint64_t now_ns)
{
    enum breaker_state s = breaker_state(b, now_ns);
    return s == BREAKER_CLOSED || (s == BREAKER_HALF_OPEN && !b->probing);
}

void breaker_sent(struct breaker *b, uint64_t now_ns)
{
    b->probing |= breaker_state(b, now_ns) == BREAKER_HALF_OPEN;
}

void breaker_succeeded(struct breaker *b)
{
    *b = (struct breaker){.n_failures = 0};
}

bool breaker_failed(struct breaker *b, uint64_t now_ns)
{
    bool was_open = b->until_ns != 0;
    if (now_ns < b->until_ns)
        return false; /* sent before it opened: one break fails many requests at once */
    b->probing = false;
    b->n_failures++;
    if (!was_open && b->n_failures < MAX_FAILURES)
        return false;
    uint32_t shift = b->n_failures - MAX_FAILURES;
    b->until_ns = now_ns + (MIN_OPEN_NS << (shift < MAX_SHIFT ? shift : MAX_SHIFT));
    return !was_open;
}

void breaker_forgot(struct breaker *b)
{
    b->probing = false;
}
