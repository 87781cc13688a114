/* plan_words.c - see plan_words.h. */
#include "engine/native/plan_words.h"

#include "base/ascii.h"

struct plan_pointer plan_pointer_of(struct str name)
{
    struct plan_pointer none = {0};
    uint32_t number = 0;
    if (name.n < 4 || name.n > 6 || name.p[0] != '<' || name.p[name.n - 1] != '>')
        return none;
    for (size_t i = 2; i + 1 < name.n; i++) {
        if (!ascii_is_digit(name.p[i]))
            return none;
        number = number * 10 + (uint32_t)(name.p[i] - '0');
    }
    return (struct plan_pointer){name.p[1], number};
}

bool plan_may_follow(const struct plan_so_far *plan, uint32_t word)
{
    const struct plan_pointer p = plan->pointers[word];
    uint32_t n_words = 0;
    while (n_words < plan->n && plan->pointers[plan->words[plan->n - 1 - n_words]].kind == 'w')
        n_words++;
    if (n_words % 2 == 1) /* the end of a span is missing */
        return p.kind == 'w' && plan->read[word] &&
               p.number >= plan->pointers[plan->words[plan->n - 1]].number;
    if (p.kind == 'w' && (plan->n == 0 || n_words > 0))
        return false;
    if (p.kind)
        return plan->read[word];
    return (int32_t)word == plan->end ? plan->n > 0 : word > (uint32_t)plan->end;
}
