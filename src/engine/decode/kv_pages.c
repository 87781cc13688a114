/* kv_pages.c - see kv_pages.h.
 *
 * A page's key is (its parent page, that page's serial, its tokens): the parent stands for all
 * tokens before it.  The serial changes when a page gets new content, so a child is never found
 * after its parent was overwritten.  A first page has no parent: its scope stands in the serial's
 * place, so that chains of different scopes never meet. */
#include "engine/decode/kv_pages.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

struct page {
    uint32_t holds;
    uint32_t prev, next; /* in the list of free pages, when holds is 0 */
    bool findable;
    uint32_t parent;
    uint64_t parent_serial, serial;
    uint32_t chain; /* next page of the same bucket */
};

struct kv_pages {
    uint32_t n_pages, page_tokens, n_free, n_buckets;
    uint64_t next_serial;
    struct page *pages; /* one more than n_pages: the list's head, oldest free page first */
    int32_t *tokens;    /* [n_pages][page_tokens], of findable pages */
    uint32_t *buckets;
};

int kv_pages_create(struct kv_pages **out, uint32_t n_pages, uint32_t page_tokens, struct err *e)
{
    struct kv_pages *kv = mem_zalloc(sizeof(*kv));
    *out = NULL;
    if (!kv)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a table of pages");
    kv->n_pages = n_pages;
    kv->page_tokens = page_tokens;
    kv->n_buckets = 16;
    while (kv->n_buckets < n_pages * 2 && kv->n_buckets < 1u << 30)
        kv->n_buckets *= 2;
    kv->pages = mem_zalloc_n((size_t)n_pages + 1, sizeof(*kv->pages));
    kv->tokens = mem_zalloc_n((size_t)n_pages * page_tokens, sizeof(*kv->tokens));
    kv->buckets = mem_zalloc_n(kv->n_buckets, sizeof(*kv->buckets));
    if (!kv->pages || !kv->tokens || !kv->buckets) {
        kv_pages_destroy(kv);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a table of %u pages", n_pages);
    }
    memset(kv->buckets, 0xff, kv->n_buckets * sizeof(*kv->buckets));
    for (uint32_t i = 0; i <= n_pages; i++) {
        kv->pages[i].prev = i ? i - 1 : n_pages;
        kv->pages[i].next = i < n_pages ? i + 1 : 0;
        kv->pages[i].serial = kv->next_serial++;
    }
    kv->n_free = n_pages;
    *out = kv;
    return 0;
}

void kv_pages_destroy(struct kv_pages *kv)
{
    if (!kv)
        return;
    mem_free(kv->pages);
    mem_free(kv->tokens);
    mem_free(kv->buckets);
    mem_free(kv);
}

uint32_t kv_pages_free(const struct kv_pages *kv)
{
    return kv->n_free;
}

static void unlink_free(struct kv_pages *kv, uint32_t i)
{
    struct page *p = &kv->pages[i];
    kv->pages[p->prev].next = p->next;
    kv->pages[p->next].prev = p->prev;
    kv->n_free--;
}

static void append_free(struct kv_pages *kv, uint32_t i)
{
    struct page *head = &kv->pages[kv->n_pages], *p = &kv->pages[i];
    p->prev = head->prev;
    p->next = kv->n_pages;
    kv->pages[head->prev].next = i;
    head->prev = i;
    kv->n_free++;
}

static uint32_t *bucket(struct kv_pages *kv, uint32_t parent, uint64_t parent_serial,
                        const int32_t *tokens)
{
    uint64_t seed = hash_mix(parent_serial * 0x9e3779b97f4a7c15u + parent);
    uint64_t h = hash_bytes(tokens, kv->page_tokens * sizeof(*tokens), seed);
    return &kv->buckets[h & (kv->n_buckets - 1)];
}

static void forget(struct kv_pages *kv, uint32_t i)
{
    struct page *p = &kv->pages[i];
    if (!p->findable)
        return;
    const int32_t *tokens = kv->tokens + (size_t)i * kv->page_tokens;
    uint32_t *at = bucket(kv, p->parent, p->parent_serial, tokens);
    while (*at != i)
        at = &kv->pages[*at].chain;
    *at = p->chain;
    p->findable = false;
}

void kv_pages_forget_all(struct kv_pages *kv)
{
    for (uint32_t i = 0; i < kv->n_pages; i++)
        forget(kv, i);
}

uint32_t kv_pages_take(struct kv_pages *kv)
{
    if (kv->n_free == 0)
        return KV_NO_PAGE;
    uint32_t i = kv->pages[kv->n_pages].next;
    unlink_free(kv, i);
    forget(kv, i);
    kv->pages[i].holds = 1;
    kv->pages[i].serial = kv->next_serial++;
    return i;
}

void kv_pages_hold(struct kv_pages *kv, uint32_t i)
{
    assert(i < kv->n_pages && kv->pages[i].holds > 0);
    kv->pages[i].holds++;
}

void kv_pages_release(struct kv_pages *kv, uint32_t i)
{
    struct page *p = &kv->pages[i];
    assert(i < kv->n_pages && p->holds > 0);
    if (--p->holds == 0)
        append_free(kv, i);
}

static uint32_t lookup(struct kv_pages *kv, uint32_t parent, uint64_t parent_serial,
                       const int32_t *tokens)
{
    uint32_t i = *bucket(kv, parent, parent_serial, tokens);
    for (; i != KV_NO_PAGE; i = kv->pages[i].chain) {
        const struct page *p = &kv->pages[i];
        if (p->parent == parent && p->parent_serial == parent_serial &&
            memcmp(kv->tokens + (size_t)i * kv->page_tokens, tokens,
                   kv->page_tokens * sizeof(*tokens)) == 0)
            return i;
    }
    return KV_NO_PAGE;
}

static uint64_t serial_of(const struct kv_pages *kv, uint64_t scope, uint32_t page)
{
    return page == KV_NO_PAGE ? scope : kv->pages[page].serial;
}

uint32_t kv_pages_find(struct kv_pages *kv, uint64_t scope, uint32_t parent, const int32_t *tokens)
{
    uint32_t i = lookup(kv, parent, serial_of(kv, scope, parent), tokens);
    if (i != KV_NO_PAGE && kv->pages[i].holds++ == 0)
        unlink_free(kv, i);
    return i;
}

uint32_t kv_pages_publish(struct kv_pages *kv, uint64_t scope, uint32_t i, uint32_t parent,
                          const int32_t *tokens)
{
    struct page *p = &kv->pages[i];
    if (p->findable)
        return i;
    uint32_t same = kv_pages_find(kv, scope, parent, tokens);
    if (same != KV_NO_PAGE) { /* equal tokens give equal bytes: one copy is enough */
        kv_pages_release(kv, i);
        return same;
    }
    memcpy(kv->tokens + (size_t)i * kv->page_tokens, tokens, kv->page_tokens * sizeof(*tokens));
    p->parent = parent;
    p->parent_serial = serial_of(kv, scope, parent);
    p->findable = true;
    uint32_t *at = bucket(kv, parent, p->parent_serial, tokens);
    p->chain = *at;
    *at = i;
    return i;
}
