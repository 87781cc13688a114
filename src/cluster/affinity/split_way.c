/* split_way.c - see split_way.h. */
#include "cluster/affinity/split_way.h"

#include <stdbool.h>

#include "engine/decode/page_exchange.h"

#define LEAST_PROMPT (16.0 * PAGE_EXCHANGE_TOKENS) /* less is read anywhere in no time */
#define LEAST_PAGES (2.0 * PAGE_EXCHANGE_TOKENS)   /* the last page is computed in any case */
#define LEAST_ANSWER 8.0
#define MARGIN 1.5         /* it must be this much faster: what is measured varies */
#define ASSUMED_LINK 125e5 /* a slow one: the first fetch measures it */
#define HANDOVER_NS 5e6    /* two more requests, and the copies */

double split_prompt_ns(const struct split_node *n, double prompt)
{
    return n->queue_ns + n->prefill_ns * prompt * (1 - n->held);
}

static double alone_ns(const struct split_node *n, const struct split_case *c)
{
    return split_prompt_ns(n, c->prompt) + n->token_ns * c->answer;
}

static double both_ns(const struct split_case *c)
{
    const double link = c->link > 0 ? c->link : ASSUMED_LINK;
    const double fetch = c->token_bytes * c->prompt * (1 - c->chosen.held) / link * 1e9;
    return split_prompt_ns(&c->strong, c->prompt) + c->strong.token_ns + HANDOVER_NS + fetch +
           c->chosen.queue_ns + c->chosen.token_ns * (c->answer - 1);
}

static bool is_known(const struct split_node *n)
{
    return n->prefill_ns > 0 && n->token_ns > 0;
}

enum split_way split_way(enum split_mode mode, const struct split_case *c)
{
    const bool able = c->token_bytes > 0 && c->answer >= LEAST_ANSWER && c->prompt >= LEAST_PAGES;
    if (mode == SPLIT_ALWAYS && able)
        return SPLIT_BOTH;
    if (mode != SPLIT_AUTO || c->prompt < LEAST_PROMPT || !is_known(&c->strong) ||
        !is_known(&c->chosen))
        return SPLIT_AS_CHOSEN;
    const double chosen = alone_ns(&c->chosen, c), strong = alone_ns(&c->strong, c);
    const double best = strong < chosen ? strong : chosen;
    if (able && both_ns(c) * MARGIN < best)
        return SPLIT_BOTH;
    return strong * MARGIN < chosen ? SPLIT_STRONG : SPLIT_AS_CHOSEN;
}
