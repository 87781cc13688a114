/* page_exchange.c - see page_exchange.h. */
#include "engine/decode/page_exchange.h"

#include <string.h>

#include "engine/engine_adapter.h"
#include "engine/engine_state.h"

size_t page_exchange_bytes(const struct shoal_engine *en)
{
    return en && en->kv && en->lm.ops && en->lm.info.pages_hold_kv ? en->lm.info.kv_page_bytes : 0;
}

uint64_t page_exchange_scope(uint64_t scope, const struct shoal_adapter *a)
{
    return engine_adapter_scope(scope, a, a ? a->scale : 0.0f);
}

void page_exchange_submit(struct shoal_engine *en, struct page_job *j)
{
    pthread_mutex_lock(&en->lock);
    bool wake = en->idle;
    en->idle = false;
    struct page_job **at = &en->page_jobs;
    while (*at)
        at = &(*at)->next;
    j->next = NULL;
    *at = j;
    pthread_mutex_unlock(&en->lock);
    if (wake)
        pthread_cond_signal(&en->wake);
}

static uint8_t *memory_of(const struct shoal_engine *en, uint32_t page)
{
    return en->kv + page * page_exchange_bytes(en);
}

static void copy_out(struct shoal_engine *en, struct page_job *j)
{
    const size_t bytes = page_exchange_bytes(en);
    const uint32_t n = j->n_tokens / PAGE_EXCHANGE_TOKENS;
    uint32_t parent = KV_NO_PAGE;
    j->n_pages = 0;
    for (uint32_t i = 0; i < n && j->n_pages < j->max_pages; i++) {
        uint32_t page = kv_pages_find(en->pages, j->scope, parent,
                                      j->tokens + (size_t)i * PAGE_EXCHANGE_TOKENS);
        if (page == KV_NO_PAGE)
            break;
        if (i >= j->skip)
            memcpy(j->data + j->n_pages++ * bytes, memory_of(en, page), bytes);
        kv_pages_release(en->pages, page); /* nothing is taken before the next step */
        parent = page;
    }
}

/* Its pages are findable and unreferenced afterwards: the task that they came for takes them. */
static void copy_in(struct shoal_engine *en, struct page_job *j)
{
    const size_t bytes = page_exchange_bytes(en);
    const uint32_t n = j->n_tokens / PAGE_EXCHANGE_TOKENS;
    /* held: of the chain, which must not be evicted for its own next page */
    uint32_t parent = KV_NO_PAGE, taken = 0, held = 0, last = KV_NO_PAGE;
    for (uint32_t i = 0; i < n && i < j->skip + j->n_pages; i++) {
        const int32_t *tokens = j->tokens + (size_t)i * PAGE_EXCHANGE_TOKENS;
        uint32_t page = kv_pages_find(en->pages, j->scope, parent, tokens);
        if (page == KV_NO_PAGE && i >= j->skip && kv_pages_free(en->pages) > held &&
            (page = kv_pages_take(en->pages)) != KV_NO_PAGE) {
            memcpy(memory_of(en, page), j->data + (i - j->skip) * bytes, bytes);
            page = kv_pages_publish(en->pages, j->scope, page, parent, tokens);
            taken++;
        }
        if (page == KV_NO_PAGE)
            break;
        if (last != KV_NO_PAGE)
            kv_pages_release(en->pages, last);
        parent = last = page;
        held++;
    }
    if (last != KV_NO_PAGE)
        kv_pages_release(en->pages, last);
    j->n_pages = taken;
}

static struct page_job *take_all(struct shoal_engine *en)
{
    pthread_mutex_lock(&en->lock);
    struct page_job *list = en->page_jobs;
    en->page_jobs = NULL;
    pthread_mutex_unlock(&en->lock);
    return list;
}

void page_exchange_run(struct shoal_engine *en)
{
    for (struct page_job *j = take_all(en), *next; j; j = next) {
        next = j->next; /* done may free it */
        if (page_exchange_bytes(en) == 0)
            j->n_pages = 0;
        else if (j->import)
            copy_in(en, j);
        else
            copy_out(en, j);
        j->done(j);
    }
}

void page_exchange_end(struct shoal_engine *en)
{
    for (struct page_job *j = take_all(en), *next; j; j = next) {
        next = j->next;
        j->n_pages = 0;
        j->done(j);
    }
}
