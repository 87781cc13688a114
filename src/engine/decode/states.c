/* states.c - see states.h. */
#include "engine/decode/states.h"

#include <assert.h>

#include "base/mem.h"

struct state {
    uint32_t prev, next; /* in the list of those that may be replaced */
    uint32_t page;       /* STATES_NONE: of no page */
    uint32_t holds;      /* readers, or its writer */
};

struct states {
    uint32_t first, n, n_pages;
    struct state *list; /* one more than n: the list's head, first to be replaced first */
    uint32_t *of_page;  /* index in list, or STATES_NONE */
};

static void unlink_state(struct states *s, uint32_t i)
{
    s->list[s->list[i].prev].next = s->list[i].next;
    s->list[s->list[i].next].prev = s->list[i].prev;
}

/* Puts it before `next`. */
static void link_before(struct states *s, uint32_t i, uint32_t next)
{
    struct state *at = &s->list[i];
    at->next = next;
    at->prev = s->list[next].prev;
    s->list[at->prev].next = i;
    s->list[next].prev = i;
}

static void link_first(struct states *s, uint32_t i)
{
    link_before(s, i, s->list[s->n].next);
}

int states_create(struct states **out, uint32_t first, uint32_t n, uint32_t n_pages, struct err *e)
{
    struct states *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a table of states");
    s->first = first;
    s->n = n;
    s->n_pages = n_pages;
    s->list = mem_zalloc_n((size_t)n + 1, sizeof(*s->list));
    s->of_page = mem_zalloc_n(n_pages, sizeof(*s->of_page));
    if (!s->list || !s->of_page) {
        states_destroy(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a table of %u states", n);
    }
    for (uint32_t i = 0; i < n_pages; i++)
        s->of_page[i] = STATES_NONE;
    s->list[n].prev = s->list[n].next = n;
    for (uint32_t i = 0; i < n; i++) {
        s->list[i].page = STATES_NONE;
        link_before(s, i, n);
    }
    *out = s;
    return 0;
}

void states_destroy(struct states *s)
{
    if (!s)
        return;
    mem_free(s->list);
    mem_free(s->of_page);
    mem_free(s);
}

uint32_t states_take(struct states *s)
{
    const uint32_t i = s->list[s->n].next;
    if (i == s->n)
        return STATES_NONE;
    unlink_state(s, i);
    if (s->list[i].page != STATES_NONE)
        s->of_page[s->list[i].page] = STATES_NONE;
    s->list[i].page = STATES_NONE;
    s->list[i].holds = 1;
    return s->first + i;
}

void states_give_back(struct states *s, uint32_t state)
{
    const uint32_t i = state - s->first;
    assert(i < s->n && s->list[i].holds == 1 && s->list[i].page == STATES_NONE);
    s->list[i].holds = 0;
    link_first(s, i);
}

void states_keep(struct states *s, uint32_t state, uint32_t page)
{
    const uint32_t i = state - s->first;
    assert(i < s->n && page < s->n_pages && s->list[i].holds == 1);
    if (s->of_page[page] != STATES_NONE) { /* equal tokens give equal bytes: one is enough */
        states_give_back(s, state);
        return;
    }
    s->list[i].holds = 0;
    s->list[i].page = page;
    s->of_page[page] = i;
    link_before(s, i, s->n);
}

uint32_t states_find(const struct states *s, uint32_t page)
{
    const uint32_t i = s->of_page[page];
    return i == STATES_NONE ? STATES_NONE : s->first + i;
}

void states_hold(struct states *s, uint32_t state)
{
    const uint32_t i = state - s->first;
    assert(i < s->n);
    if (s->list[i].holds++ == 0)
        unlink_state(s, i);
}

void states_release(struct states *s, uint32_t state)
{
    const uint32_t i = state - s->first;
    assert(i < s->n && s->list[i].holds > 0);
    if (--s->list[i].holds > 0)
        return;
    if (s->list[i].page == STATES_NONE) /* forgotten meanwhile */
        link_first(s, i);
    else
        link_before(s, i, s->n);
}

void states_cool(struct states *s, uint32_t page)
{
    const uint32_t i = s->of_page[page];
    if (i == STATES_NONE || s->list[i].holds > 0)
        return;
    unlink_state(s, i);
    uint32_t next = s->list[s->n].next;
    while (next != s->n && s->list[next].page == STATES_NONE) /* those of no page come first */
        next = s->list[next].next;
    link_before(s, i, next);
}

void states_forget(struct states *s, uint32_t page)
{
    const uint32_t i = s->of_page[page];
    if (i == STATES_NONE)
        return;
    s->of_page[page] = STATES_NONE;
    s->list[i].page = STATES_NONE;
    if (s->list[i].holds == 0) {
        unlink_state(s, i);
        link_first(s, i);
    }
}
