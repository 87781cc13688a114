/* test_kv_pages.c - a page is found by its own tokens and by all tokens before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/decode/kv_pages.h"

enum { PAGE = 2 }; /* tokens */

static struct kv_pages *open_pages(uint32_t n)
{
    struct kv_pages *kv;
    struct err e = {0};
    assert_int_equal(kv_pages_create(&kv, n, PAGE, &e), 0);
    assert_int_equal(kv_pages_free(kv), n);
    return kv;
}

static uint32_t put(struct kv_pages *kv, uint32_t parent, int32_t a, int32_t b)
{
    const int32_t tokens[PAGE] = {a, b};
    uint32_t page = kv_pages_take(kv);
    assert_int_not_equal(page, KV_NO_PAGE);
    return kv_pages_publish(kv, 0, page, parent, tokens);
}

static uint32_t find(struct kv_pages *kv, uint32_t parent, int32_t a, int32_t b)
{
    const int32_t tokens[PAGE] = {a, b};
    return kv_pages_find(kv, 0, parent, tokens);
}

static void test_a_page_is_found_behind_its_parent_only(void **state)
{
    struct kv_pages *kv = open_pages(4);
    (void)state;
    uint32_t one = put(kv, KV_NO_PAGE, 1, 2), two = put(kv, KV_NO_PAGE, 5, 6);
    uint32_t child = put(kv, one, 3, 4);
    assert_int_equal(find(kv, one, 3, 4), child);
    assert_int_equal(find(kv, two, 3, 4), KV_NO_PAGE);
    assert_int_equal(find(kv, KV_NO_PAGE, 3, 4), KV_NO_PAGE);
    assert_int_equal(find(kv, one, 3, 5), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

/* The keys of a page depend on all tokens before it: once its parent holds other tokens, it must
 * not be found, or an answer would be computed from the keys of another prompt. */
static void test_a_page_is_not_found_behind_a_parent_with_new_tokens(void **state)
{
    struct kv_pages *kv = open_pages(2);
    (void)state;
    uint32_t parent = put(kv, KV_NO_PAGE, 1, 2), child = put(kv, parent, 3, 4);
    kv_pages_release(kv, parent); /* the oldest free page: the next one taken */
    kv_pages_release(kv, child);
    assert_int_equal(put(kv, KV_NO_PAGE, 8, 9), parent);
    assert_int_equal(find(kv, KV_NO_PAGE, 1, 2), KV_NO_PAGE);
    assert_int_equal(find(kv, parent, 3, 4), KV_NO_PAGE);
    assert_int_equal(put(kv, parent, 3, 4), child); /* the last free page, filled anew */
    assert_int_equal(find(kv, parent, 3, 4), child);
    kv_pages_destroy(kv);
}

static void test_scopes_never_meet(void **state)
{
    const int32_t first[PAGE] = {1, 2}, second[PAGE] = {3, 4};
    struct kv_pages *kv = open_pages(6);
    (void)state;
    uint32_t a = kv_pages_publish(kv, 7, kv_pages_take(kv), KV_NO_PAGE, first);
    uint32_t b = kv_pages_publish(kv, 7, kv_pages_take(kv), a, second);
    assert_int_equal(kv_pages_find(kv, 7, KV_NO_PAGE, first), a);
    assert_int_equal(kv_pages_find(kv, 7, a, second), b);
    assert_int_equal(kv_pages_find(kv, 8, KV_NO_PAGE, first), KV_NO_PAGE);
    assert_int_equal(kv_pages_find(kv, 0, KV_NO_PAGE, first), KV_NO_PAGE);
    /* equal tokens of another scope are other pages, also behind the first */
    uint32_t c = kv_pages_publish(kv, 8, kv_pages_take(kv), KV_NO_PAGE, first);
    assert_int_not_equal(c, a);
    assert_int_equal(kv_pages_find(kv, 8, c, second), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

static void test_equal_pages_become_one(void **state)
{
    struct kv_pages *kv = open_pages(3);
    (void)state;
    uint32_t first = put(kv, KV_NO_PAGE, 1, 2);
    assert_int_equal(put(kv, KV_NO_PAGE, 1, 2), first);
    assert_int_equal(kv_pages_free(kv), 2); /* the copy was given back */
    kv_pages_release(kv, first);
    assert_int_equal(kv_pages_free(kv), 2); /* the other one still has it */
    kv_pages_release(kv, first);
    assert_int_equal(kv_pages_free(kv), 3);
    assert_int_equal(find(kv, KV_NO_PAGE, 1, 2), first); /* free, but still there */
    assert_int_equal(kv_pages_free(kv), 2);
    kv_pages_destroy(kv);
}

static void test_the_page_that_is_free_longest_is_taken_first(void **state)
{
    struct kv_pages *kv = open_pages(3);
    uint32_t page[3];
    (void)state;
    for (int32_t i = 0; i < 3; i++)
        page[i] = put(kv, KV_NO_PAGE, i, i);
    assert_int_equal(kv_pages_take(kv), KV_NO_PAGE);
    kv_pages_release(kv, page[1]);
    kv_pages_release(kv, page[2]);
    kv_pages_release(kv, page[0]);
    assert_int_equal(find(kv, KV_NO_PAGE, 2, 2), page[2]); /* in use again */
    assert_int_equal(kv_pages_take(kv), page[1]);
    assert_int_equal(kv_pages_take(kv), page[0]);
    assert_int_equal(kv_pages_take(kv), KV_NO_PAGE);
    assert_int_equal(find(kv, KV_NO_PAGE, 0, 0), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

/* ---- against a model ---- */

enum { N_PAGES = 7, N_STEPS = 20000 };

/* What is known of each page, in plain lists. */
static struct {
    uint32_t refs[N_PAGES], parent[N_PAGES];
    uint64_t scope[N_PAGES];
    uint32_t born[N_PAGES], parent_born[N_PAGES]; /* a page that was taken again is another one */
    bool findable[N_PAGES];
    int32_t tokens[N_PAGES][PAGE];
    uint32_t order[N_PAGES], n_free; /* free pages, the oldest first */
} model;

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % n;
}

static void model_use(uint32_t page)
{
    for (uint32_t i = 0; i < model.n_free; i++)
        if (model.order[i] == page) {
            memmove(&model.order[i], &model.order[i + 1],
                    (model.n_free - i - 1) * sizeof(model.order[0]));
            model.n_free--;
            return;
        }
}

static void model_drop(uint32_t page)
{
    if (--model.refs[page] == 0)
        model.order[model.n_free++] = page;
}

static uint32_t model_find(uint64_t scope, uint32_t parent, const int32_t *tokens)
{
    for (uint32_t i = 0; i < N_PAGES; i++)
        if (model.findable[i] && model.parent[i] == parent &&
            memcmp(model.tokens[i], tokens, sizeof(model.tokens[i])) == 0 &&
            (parent == KV_NO_PAGE ? model.scope[i] == scope
                                  : model.parent_born[i] == model.born[parent]))
            return i;
    return KV_NO_PAGE;
}

/* Any referenced page, or none. */
static uint32_t some(uint32_t *seed)
{
    for (int tries = 0; tries < 8; tries++) {
        const uint32_t page = draw(seed, N_PAGES);
        if (model.refs[page] > 0)
            return page;
    }
    return KV_NO_PAGE;
}

/* 20,000 random steps: what is found, what is taken, and how many are free is as in the model. */
static void test_like_the_model(void **state)
{
    uint32_t seed = 7, n_found = 0, n_joined = 0, n_evicted = 0, n_full = 0;
    struct kv_pages *kv = open_pages(N_PAGES);
    (void)state;
    memset(&model, 0, sizeof(model));
    for (uint32_t i = 0; i < N_PAGES; i++)
        model.order[model.n_free++] = i;
    for (uint32_t step = 1; step <= N_STEPS; step++) {
        const uint64_t scope = draw(&seed, 2);
        const int32_t tokens[PAGE] = {(int32_t)draw(&seed, 2), (int32_t)draw(&seed, 2)};
        const uint32_t parent = draw(&seed, 3) == 0 ? KV_NO_PAGE : some(&seed);
        const uint32_t what = draw(&seed, 8);
        if (what < 2) { /* a new page, published at once or not at all */
            const uint32_t page = kv_pages_take(kv);
            assert_int_equal(page, model.n_free ? model.order[0] : KV_NO_PAGE);
            n_full += page == KV_NO_PAGE;
            if (page == KV_NO_PAGE)
                continue;
            model_use(page);
            n_evicted += model.findable[page];
            model.findable[page] = false;
            model.refs[page] = 1;
            model.born[page] = step;
            if (what == 0)
                continue;
            const uint32_t same = model_find(scope, parent, tokens);
            const uint32_t got = kv_pages_publish(kv, scope, page, parent, tokens);
            if (same != KV_NO_PAGE) { /* the caller's reference moves */
                assert_int_equal(got, same);
                n_joined++;
                model_use(same);
                model.refs[same]++;
                model_drop(page);
                continue;
            }
            assert_int_equal(got, page);
            model.findable[page] = true;
            model.scope[page] = scope;
            model.parent[page] = parent;
            model.parent_born[page] = parent == KV_NO_PAGE ? 0 : model.born[parent];
            memcpy(model.tokens[page], tokens, sizeof(tokens));
            /* once more changes nothing */
            assert_int_equal(kv_pages_publish(kv, scope, page, parent, tokens), page);
        } else if (what < 5) {
            const uint32_t want = model_find(scope, parent, tokens);
            assert_int_equal(kv_pages_find(kv, scope, parent, tokens), want);
            if (want == KV_NO_PAGE)
                continue;
            n_found++;
            model_use(want);
            model.refs[want]++;
        } else {
            const uint32_t page = some(&seed);
            if (page == KV_NO_PAGE)
                continue;
            if (what == 5 && model.refs[page] < 3) {
                kv_pages_hold(kv, page);
                model.refs[page]++;
            } else {
                kv_pages_release(kv, page);
                model_drop(page);
            }
        }
        assert_int_equal(kv_pages_free(kv), model.n_free);
    }
    assert_true(n_found > 500 && n_joined > 100 && n_evicted > 500 && n_full > 10);
    kv_pages_destroy(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_is_found_behind_its_parent_only),
        cmocka_unit_test(test_a_page_is_not_found_behind_a_parent_with_new_tokens),
        cmocka_unit_test(test_scopes_never_meet),
        cmocka_unit_test(test_equal_pages_become_one),
        cmocka_unit_test(test_the_page_that_is_free_longest_is_taken_first),
        cmocka_unit_test(test_like_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
