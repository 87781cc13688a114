/* load_plan.c - see load_plan.h. */
#include "load/load_plan.h"

#include "base/buf.h"
#include "load/load_trace.h"

/* clang-format off */
static const char *const questions[] = {
    "Why is the sky blue?",
    "Write two sentences about a lighthouse.",
    "How do I make a good cup of coffee?",
    "Explain what a heat pump does.",
    "Name three things that one should know about bees.",
    "What is the difference between weather and climate?",
    "Tell a very short story about a boat.",
    "How does a bicycle stay upright?",
};
static const char *const commands[] = {
    "turn off the kitchen lights",
    "set the heating to 19 degrees",
    "what is 7 times 8",
    "is the front door locked?",
    "play some jazz in the living room",
    "how warm is it in the bathroom?",
    "turn on the fan and close the blinds",
    "dim the lamp in the bedroom to 30 percent",
};
static const char *const words[] = {
    "river", "stone", "green", "under", "seven", "morning", "carry", "window", "letter", "north", "quiet", "engine",
    "salt", "before", "paper", "bridge", "winter", "follow", "copper", "garden", "light", "answer", "road", "small",
    "summer", "market", "glass", "always", "turn", "silver", "water", "house",
};
/* clang-format on */
#define N(a) (sizeof(a) / sizeof((a)[0]))

void load_plan_words(struct buf *b, uint32_t n, uint64_t *seed)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            buf_putc(b, ' ');
        buf_puts(b, words[load_random(seed) % N(words)]);
    }
}

void load_plan_prompt(struct load_plan *p, enum load_kind kind, struct load_item *out)
{
    const bool chats = kind == LOAD_CHAT || kind == LOAD_COMPLETION;
    const uint64_t r = load_random(&p->seed);
    out->n_words = p->n_words;
    if (p->n_words > 0)
        out->prompt = NULL;
    else if (p->n_prompts > 0)
        out->prompt = p->prompts[r % p->n_prompts];
    else
        out->prompt = chats ? questions[r % N(questions)] : commands[r % N(commands)];
}

static bool next_row(struct load_plan *p, struct load_item *out)
{
    if (p->n >= p->trace->n)
        return false;
    const struct load_trace_row *row = &p->trace->rows[p->n];
    *out = (struct load_item){.at_ns = (uint64_t)((double)row->at_ns / p->speed),
                              .part = row->part,
                              .max_tokens = row->max_tokens ? row->max_tokens : p->max_tokens,
                              .n_words = row->n_words,
                              .prompt = row->prompt};
    if (!row->prompt && row->n_words == 0)
        load_plan_prompt(p, p->mix->part[row->part].kind, out);
    return p->end_ns == 0 || out->at_ns < p->end_ns;
}

bool load_plan_next(struct load_plan *p, struct load_item *out)
{
    if (p->max_requests > 0 && p->n >= p->max_requests)
        return false;
    if (p->trace) {
        if (!next_row(p, out))
            return false;
    } else {
        *out = (struct load_item){.at_ns = load_arrivals_next(&p->arrivals),
                                  .part = load_mix_pick(p->mix, load_random(&p->seed)),
                                  .max_tokens = p->max_tokens};
        load_plan_prompt(p, p->mix->part[out->part].kind, out);
        if (out->at_ns >= p->end_ns)
            return false;
    }
    p->n++;
    return true;
}
