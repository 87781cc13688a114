/* test_token_queue.c - tokens on their way from an engine's thread, against a list of what was
 * pushed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/generate/token_queue.h"
#include "host/kept_answer.h"

#define N_CHOICES 3u
#define MAX_PUSHED 64u
#define QUEUE_BYTES ((size_t)256 << 10) /* what token_queue.c holds before it is full */

static uint32_t n_posts;

static void on_post(struct executor *x, struct executor_task *t)
{
    (void)x;
    (void)t;
    n_posts++;
}

static const struct executor_ops ops = {.post = on_post};
static struct executor executor = {&ops};
static struct executor_task wake;

struct pushed {
    uint32_t choice, n_top;
    struct shoal_event event;
    struct shoal_logprob top[3];
    char text[40];
};

/* A token with everything that can differ. */
static void make(struct pushed *p, uint32_t number)
{
    p->choice = number % N_CHOICES;
    p->n_top = (number / 3) % 4;
    size_t n = number % (sizeof(p->text) + 1);
    for (size_t i = 0; i < n; i++)
        p->text[i] = (char)('a' + (number + i) % 26);
    for (uint32_t i = 0; i < p->n_top; i++)
        p->top[i] = (struct shoal_logprob){.token = (int32_t)(number * 10 + i),
                                           .logprob = -(float)number - (float)i / 8};
    p->event =
        (struct shoal_event){.size = sizeof(p->event),
                             .kind = number % 5 == 0 ? SHOAL_EVENT_PROMPT : SHOAL_EVENT_TOKEN,
                             .token = number % 7 == 0 ? -1 : (int32_t)number,
                             .text = p->text,
                             .text_bytes = n,
                             .logprob = -(float)number,
                             .top = p->top,
                             .n_top = p->n_top};
}

static void compare(const struct pushed *want, const struct kept_token *got)
{
    assert_int_equal(got->choice, want->choice);
    assert_int_equal(got->token, want->event.token);
    assert_true(got->logprob == want->event.logprob);
    assert_int_equal(got->echo, want->event.kind == SHOAL_EVENT_PROMPT);
    assert_int_equal(got->text_bytes, want->event.text_bytes);
    assert_memory_equal(got->text, want->text, want->event.text_bytes);
    assert_int_equal(got->n_top, want->n_top);
    for (uint32_t i = 0; i < want->n_top; i++) {
        assert_int_equal(got->top[i].token, want->top[i].token);
        assert_true(got->top[i].logprob == want->top[i].logprob);
    }
}

/* Any number of tokens between two takes: all arrive, once, in order, with all that they have. */
static void test_all_that_is_pushed_is_taken(void **state)
{
    static struct pushed list[MAX_PUSHED];
    struct token_queue_end ends[N_CHOICES] = {0};
    struct token_queue q;
    uint32_t number = 0;
    (void)state;
    token_queue_init(&q, &executor, &wake);
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t n = round % MAX_PUSHED;
        bool is_done[N_CHOICES];
        const char *records;
        size_t bytes, at = 0;
        struct kept_token t;
        n_posts = 0;
        for (uint32_t i = 0; i < n; i++) {
            make(&list[i], number++);
            token_queue_push(&q, &ends[list[i].choice], list[i].choice, &list[i].event);
        }
        assert_int_equal(n_posts, n > 0); /* one waking for all of them */
        assert_int_equal(token_queue_take(&q, ends, N_CHOICES, is_done, &records, &bytes), 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(token_queue_next(records, bytes, &at, &t));
            compare(&list[i], &t);
        }
        assert_false(token_queue_next(records, bytes, &at, &t));
        for (uint32_t i = 0; i < N_CHOICES; i++)
            assert_false(is_done[i]);
    }
    token_queue_fini(&q);
}

static void test_ends_and_progress(void **state)
{
    struct token_queue_end ends[N_CHOICES] = {0};
    const struct shoal_event done = {
        .kind = SHOAL_EVENT_DONE, .generated_tokens = 7, .total_ns = 9};
    const struct shoal_event step = {.kind = SHOAL_EVENT_PROGRESS,
                                     .prompt_tokens = 10,
                                     .cached_tokens = 2,
                                     .computed_tokens = 6};
    const struct shoal_event last = {.kind = SHOAL_EVENT_TOKEN, .text = "", .last = true};
    struct token_queue_progress p;
    struct kept_token t;
    struct token_queue q;
    bool is_done[N_CHOICES];
    const char *records;
    size_t bytes, at = 0;
    (void)state;
    token_queue_init(&q, &executor, &wake);
    n_posts = 0;
    assert_false(token_queue_progress(&q, &ends[1], &p));
    token_queue_push(&q, &ends[1], 1, &step);
    assert_int_equal(n_posts, 1);
    assert_true(token_queue_progress(&q, &ends[1], &p));
    assert_int_equal(p.tokens, 10);
    assert_int_equal(p.cached, 2);
    assert_int_equal(p.computed, 6);
    assert_false(token_queue_progress(&q, &ends[1], &p)); /* nothing new */
    assert_false(token_queue_progress(&q, &ends[0], &p));
    assert_int_equal(token_queue_take(&q, ends, N_CHOICES, is_done, &records, &bytes), 0);
    assert_int_equal(bytes, 0);
    token_queue_push(&q, &ends[2], 2, &last); /* its end follows at once and wakes for both */
    assert_int_equal(n_posts, 1);
    token_queue_push(&q, &ends[2], 2, &done);
    assert_int_equal(n_posts, 2);
    assert_int_equal(token_queue_take(&q, ends, N_CHOICES, is_done, &records, &bytes), 0);
    assert_true(token_queue_next(records, bytes, &at, &t));
    assert_int_equal(t.choice, 2);
    assert_false(token_queue_next(records, bytes, &at, &t));
    assert_true(!is_done[0] && !is_done[1] && is_done[2]);
    assert_int_equal(ends[2].done.generated_tokens, 7);
    assert_int_equal(ends[2].done.total_ns, 9);
    token_queue_fini(&q);
}

/* Tokens of a given size until the queue refuses one: what came before stays whole, the end still
 * arrives. */
static void test_a_full_queue_keeps_the_end(void **state)
{
    static char text[4096];
    const struct shoal_event token = {
        .kind = SHOAL_EVENT_TOKEN, .text = text, .text_bytes = sizeof(text) - 28};
    const struct shoal_event small = {.kind = SHOAL_EVENT_TOKEN, .text = "x", .text_bytes = 1};
    const struct shoal_event done = {.kind = SHOAL_EVENT_DONE};
    struct token_queue_end ends[1] = {0};
    struct kept_token t;
    struct token_queue q;
    bool is_done[1];
    const char *records;
    size_t bytes, at = 0;
    (void)state;
    for (uint32_t over = 0; over < 2; over++) {
        token_queue_init(&q, &executor, &wake);
        at = 0;
        ends[0].is_done = false;
        /* a record of 28 bytes before the text: exactly 64 of 4096 bytes fit */
        for (uint32_t i = 0; i < QUEUE_BYTES / sizeof(text); i++)
            token_queue_push(&q, &ends[0], 0, &token);
        if (over) {
            token_queue_push(&q, &ends[0], 0, &small);
        }
        token_queue_push(&q, &ends[0], 0, &done);
        assert_int_equal(token_queue_take(&q, ends, 1, is_done, &records, &bytes),
                         over ? SHOAL_EBUSY : 0);
        assert_true(is_done[0]);
        assert_int_equal(bytes, QUEUE_BYTES);
        for (uint32_t i = 0; i < QUEUE_BYTES / sizeof(text); i++) {
            assert_true(token_queue_next(records, bytes, &at, &t));
            assert_int_equal(t.text_bytes, token.text_bytes);
        }
        assert_false(token_queue_next(records, bytes, &at, &t));
        /* once something was lost, nothing more is kept: it would follow a gap */
        token_queue_push(&q, &ends[0], 0, &small);
        assert_int_equal(token_queue_take(&q, ends, 1, is_done, &records, &bytes),
                         over ? SHOAL_EBUSY : 0);
        assert_int_equal(bytes > 0, !over);
        token_queue_fini(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_that_is_pushed_is_taken),
                                       cmocka_unit_test(test_ends_and_progress),
                                       cmocka_unit_test(test_a_full_queue_keeps_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
