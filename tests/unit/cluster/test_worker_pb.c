/* test_worker_pb.c - cluster/worker/worker_pb.h and worker_frame.h: messages survive a round
 * trip, and hostile ones of a compromised worker are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/worker/worker_frame.h"
#include "cluster/worker/worker_pb.h"

static void test_start(void **state)
{
    (void)state;
    struct worker_start s = {.name = "m",
                             .path = "/models/m.gguf",
                             .cache_dir = "",
                             .spec = {.n_ctx = 512,
                                      .max_tasks = 3,
                                      .max_queue = 4,
                                      .n_threads = 2,
                                      .kv_bytes = 1 << 20,
                                      .kv_q8 = true,
                                      .int8 = true,
                                      .stream_save_ms = 5,
                                      .stream_ttl_ms = 6,
                                      .max_streams = 7,
                                      .apart_opts = {.memory_bytes = 1ull << 40, .nice = 7}},
                             .memory_bytes = 99,
                             .n_links = 2,
                             .parent = 77,
                             .log_level = LOG_LEVEL_DEBUG,
                             .log_format = LOG_FORMAT_JSON};
    struct worker_start got;
    struct arena a;
    struct buf b;
    s.spec.apart_opts.cpus[1] = 5;
    arena_init(&a, 1 << 20);
    buf_init(&b, WORKER_PB_MAX_BYTES);
    assert_int_equal(worker_pb_put_start(&b, &s), 0);
    assert_int_equal(worker_pb_read_start(&got, &a, (const uint8_t *)b.data, b.len), 0);
    assert_string_equal(got.name, s.name);
    assert_string_equal(got.path, s.path);
    assert_string_equal(got.cache_dir, ""); /* no cache, unlike NULL, which is the default */
    assert_memory_equal(&got.spec, &s.spec, sizeof(s.spec));
    assert_int_equal(got.memory_bytes, 99);
    assert_int_equal(got.n_links, 2);
    assert_int_equal(got.parent, 77);
    assert_int_equal(got.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(got.log_format, LOG_FORMAT_JSON);
    buf_fini(&b);
    arena_fini(&a);
}

static int trip(struct worker_state *got, struct arena *a, const struct worker_state *s)
{
    struct buf b;
    buf_init(&b, WORKER_PB_MAX_BYTES * 4);
    int rc = worker_pb_put_state(&b, s);
    if (rc == 0)
        rc = worker_pb_read_state(got, a, (const uint8_t *)b.data, b.len);
    buf_fini(&b);
    return rc;
}

static void test_state(void **state)
{
    (void)state;
    struct worker_state got, s = {.state = REGISTRY_READY,
                                  .progress = 1000,
                                  .code = SHOAL_ELIMIT,
                                  .error = "no room",
                                  .missing = "Landlock",
                                  .info = {.kinds = SHOAL_KIND_GENERATE,
                                           .n_ctx = 4096,
                                           .bytes = 1 << 20,
                                           .load_ms = 12.5},
                                  .prefill_ns = 1e5,
                                  .token_ns = 2e6};
    struct arena a;
    arena_init(&a, 1 << 20);
    assert_int_equal(trip(&got, &a, &s), 0);
    assert_int_equal(got.state, REGISTRY_READY);
    assert_int_equal(got.code, SHOAL_ELIMIT);
    assert_string_equal(got.error, "no room");
    assert_string_equal(got.missing, "Landlock");
    assert_int_equal(got.info.n_ctx, 4096);
    assert_int_equal(got.info.bytes, 1 << 20);
    assert_true(got.token_ns > 1.9e6 && got.token_ns < 2.1e6);
    arena_fini(&a);
}

static void test_hostile_states(void **state)
{
    (void)state;
    char longer[WORKER_PB_MAX_BYTES + 1];
    struct worker_state got, s = {.state = REGISTRY_UNLOADED, .error = "", .missing = ""};
    struct arena a;
    arena_init(&a, 1 << 20);
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT); /* not a worker state */
    s.state = (enum registry_state)77;
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT);
    s.state = REGISTRY_READY; /* ready for no kind of work */
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT);
    s.info.kinds = 1u << 30;
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT);
    s.info.kinds = SHOAL_KIND_GENERATE | 1u << 30;
    s.info.bytes = SIZE_MAX; /* would overflow the sum of all models */
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT);
    s.info.bytes = 0;
    s.progress = UINT32_MAX;
    s.code = 5; /* no error */
    s.token_ns = NAN;
    s.prefill_ns = -1;
    s.info.load_ms = INFINITY;
    s.error = "a\x1b[2J\nb";
    s.missing = "\xff";
    assert_int_equal(trip(&got, &a, &s), 0);
    assert_int_equal(got.info.kinds, SHOAL_KIND_GENERATE);
    assert_int_equal(got.progress, 1000);
    assert_int_equal(got.code, SHOAL_EIO);
    assert_true(got.token_ns <= 0 && got.prefill_ns <= 0 && got.info.load_ms <= 0);
    assert_string_equal(got.error, "a?[2J?b");
    assert_string_equal(got.missing, "?");
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    s.error = longer;
    assert_int_equal(trip(&got, &a, &s), SHOAL_EFORMAT);
    assert_int_equal(worker_pb_read_state(&got, &a, (const uint8_t *)"\xff\xff", 2), SHOAL_EFORMAT);
    arena_fini(&a);
}

static void test_frames(void **state)
{
    (void)state;
    struct worker_frame f;
    struct buf b;
    buf_init(&b, 4096);
    worker_frame_put(&b, WORKER_FRAME_EVENTS, 7, "abc", 3);
    worker_frame_put(&b, WORKER_FRAME_CLOSED, UINT64_MAX, NULL, 0);
    for (size_t n = 0; n < 19; n++) /* every truncation */
        assert_int_equal(worker_frame_next(&f, b.data, n), 0);
    assert_int_equal(worker_frame_next(&f, b.data, b.len), 1);
    assert_int_equal(f.kind, WORKER_FRAME_EVENTS);
    assert_int_equal(f.id, 7);
    assert_int_equal(f.n, 3);
    assert_memory_equal(f.p, "abc", 3);
    assert_int_equal(worker_frame_next(&f, b.data + f.bytes, b.len - f.bytes), 1);
    assert_int_equal(f.kind, WORKER_FRAME_CLOSED);
    assert_true(f.id == UINT64_MAX);
    b.data[4] = 0; /* the kind */
    assert_int_equal(worker_frame_next(&f, b.data, b.len), SHOAL_EFORMAT);
    b.data[4] = 100;
    assert_int_equal(worker_frame_next(&f, b.data, b.len), SHOAL_EFORMAT);
    b.data[4] = WORKER_FRAME_RUN;
    memset(b.data, 0xff, 4); /* the length */
    assert_int_equal(worker_frame_next(&f, b.data, b.len), SHOAL_EFORMAT);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_hostile_states),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
