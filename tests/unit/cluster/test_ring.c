/* test_ring.c - cluster/worker/ring.h: bytes arrive in order between two threads, and a writer
 * that lies about its position is detected. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/worker/ring.h"

#define HEAD_BYTES 4096u /* before the data; the writer's position is its first number */
#define TOTAL ((uint64_t)1 << 20)

struct pair {
    int fd;
    struct ring writer, reader;
};

static void open_pair(struct pair *p, size_t cap)
{
    assert_int_equal(ring_memory(&p->fd, cap, NULL), 0);
    assert_int_equal(ring_open(&p->writer, p->fd, NULL), 0);
    assert_int_equal(ring_open(&p->reader, p->fd, NULL), 0);
}

static void close_pair(struct pair *p)
{
    ring_close(&p->writer);
    ring_close(&p->reader);
    close(p->fd);
}

static void test_bytes_come_back_in_order(void **state)
{
    (void)state;
    struct pair p;
    char out[8192];
    size_t n;
    bool wake;
    open_pair(&p, 4096);
    for (int round = 0; round < 100; round++) { /* past the end many times */
        char in[3000];
        memset(in, 'a' + round % 26, sizeof(in));
        assert_int_equal(ring_write(&p.writer, in, sizeof(in), &wake), sizeof(in));
        assert_int_equal(ring_read(&p.reader, out, sizeof(out), &n, &wake), 0);
        assert_int_equal(n, sizeof(in));
        assert_memory_equal(out, in, n);
    }
    assert_int_equal(ring_read(&p.reader, out, sizeof(out), &n, &wake), 0);
    assert_int_equal(n, 0);
    close_pair(&p);
}

static void test_a_full_ring_takes_a_part(void **state)
{
    (void)state;
    struct pair p;
    char bytes[6000] = {0};
    size_t n;
    bool wake;
    open_pair(&p, 4096);
    assert_int_equal(ring_write(&p.writer, bytes, sizeof(bytes), &wake), 4096);
    assert_int_equal(ring_write(&p.writer, bytes, 1, &wake), 0);
    assert_int_equal(ring_read(&p.reader, bytes, 10, &n, &wake), 0);
    assert_true(wake); /* the writer waits for space */
    assert_int_equal(ring_write(&p.writer, bytes, 10, &wake), 10);
    assert_int_equal(ring_read(&p.reader, bytes, 10, &n, &wake), 0);
    assert_false(wake); /* its data was written */
    close_pair(&p);
}

static void test_who_sleeps_is_woken_once(void **state)
{
    (void)state;
    struct pair p;
    char c = 'x';
    size_t n;
    bool wake;
    open_pair(&p, 4096);
    assert_true(ring_sleep(&p.reader));
    assert_int_equal(ring_write(&p.writer, &c, 1, &wake), 1);
    assert_true(wake);
    assert_int_equal(ring_write(&p.writer, &c, 1, &wake), 1);
    assert_false(wake);                  /* it is awake, or soon will be */
    assert_false(ring_sleep(&p.reader)); /* data is available */
    assert_int_equal(ring_read(&p.reader, &c, 1, &n, &wake), 0);
    assert_int_equal(ring_read(&p.reader, &c, 1, &n, &wake), 0);
    assert_true(ring_sleep(&p.reader));
    close_pair(&p);
}

/* A hostile writer sets its position to anything. */
static void test_impossible_positions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        uint64_t at;
        int rc;
        size_t n;
    } cases[] = {
        {"more than there is room for", 5000 + 4097, SHOAL_EFORMAT, 0},
        {"far away", UINT64_MAX, SHOAL_EFORMAT, 0},
        {"back", 4999, SHOAL_EFORMAT, 0},
        {"back to the start", 0, SHOAL_EFORMAT, 0},
        {"the sign bit", 1ull << 63, SHOAL_EFORMAT, 0},
        {"nothing new", 5000, 0, 0},
        {"exactly full", 5000 + 4096, 0, 4096},
    };
    char out[8192];
    size_t n;
    bool wake;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair p;
        open_pair(&p, 4096);
        for (int k = 0; k < 5; k++) { /* both at 5000 */
            assert_int_equal(ring_write(&p.writer, out, 1000, &wake), 1000);
            assert_int_equal(ring_read(&p.reader, out, 1000, &n, &wake), 0);
        }
        uint64_t *raw = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0);
        assert_ptr_not_equal(raw, MAP_FAILED);
        assert_int_equal(raw[0], 5000);
        raw[0] = cases[i].at;
        if (ring_read(&p.reader, out, sizeof(out), &n, &wake) != cases[i].rc || n != cases[i].n)
            fail_msg("%s: %zu bytes", cases[i].why, n);
        raw[8] = 12345; /* the reader's position in shared memory: the reader has its own copy */
        munmap(raw, HEAD_BYTES);
        close_pair(&p);
    }
}

/* The position changes during a read: it never returns more than requested. */
struct scribbler {
    _Atomic uint64_t *at;
    _Atomic bool stop;
};

static void *scribble(void *arg)
{
    struct scribbler *s = arg;
    for (uint64_t i = 1; !s->stop; i++)
        *s->at = i * 2654435761u % 9000;
    return NULL;
}

static void test_a_writer_that_scribbles(void **state)
{
    (void)state;
    struct pair p;
    pthread_t thread;
    open_pair(&p, 4096);
    void *raw = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p.fd, 0);
    assert_ptr_not_equal(raw, MAP_FAILED);
    struct scribbler s = {raw, false};
    assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
    char *out = malloc(1000); /* allocated separately, so that a sanitizer detects overruns */
    assert_non_null(out);
    for (int i = 0; i < 100000; i++) {
        size_t n = 0;
        bool wake;
        if (ring_read(&p.reader, out, 1000, &n, &wake) == 0)
            assert_true(n <= 1000);
        else
            assert_int_equal(n, 0);
    }
    s.stop = true;
    pthread_join(thread, NULL);
    free(out);
    munmap(raw, HEAD_BYTES);
    close_pair(&p);
}

static void test_the_memory_cannot_shrink(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p, 4096);
    assert_int_equal(ftruncate(p.fd, 0), -1);
    assert_int_equal(ftruncate(p.fd, 1 << 20), -1);
    close_pair(&p);
}

static void test_wrong_memory_is_refused(void **state)
{
    (void)state;
    struct ring r;
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(ring_open(&r, fileno(f), NULL), SHOAL_EIO);
    assert_int_equal(ftruncate(fileno(f), HEAD_BYTES + 5000), 0);
    assert_int_equal(ring_open(&r, fileno(f), NULL), SHOAL_EIO);
    fclose(f);
}

/* ---- two threads, as two processes ---- */

static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

static void *write_all(void *arg)
{
    struct ring *r = arg;
    uint8_t bytes[777];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t n = TOTAL - at < sizeof(bytes) ? (size_t)(TOTAL - at) : sizeof(bytes);
        bool wake;
        for (size_t i = 0; i < n; i++)
            bytes[i] = byte_at(at + i);
        n = ring_write(r, bytes, n, &wake);
        at += n;
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct pair p;
    pthread_t thread;
    uint8_t out[1000];
    open_pair(&p, 4096);
    struct ring same = p.reader; /* one mapping: ThreadSanitizer tracks memory by address */
    assert_int_equal(pthread_create(&thread, NULL, write_all, &same), 0);
    for (uint64_t at = 0; at < TOTAL;) {
        size_t n = 0;
        bool wake;
        assert_int_equal(ring_read(&p.reader, out, sizeof(out), &n, &wake), 0);
        if (n == 0)
            sched_yield();
        for (size_t i = 0; i < n; i++)
            if (out[i] != byte_at(at + i))
                fail_msg("byte %llu is wrong", (unsigned long long)(at + i));
        at += n;
    }
    pthread_join(thread, NULL);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_back_in_order),
        cmocka_unit_test(test_a_full_ring_takes_a_part),
        cmocka_unit_test(test_who_sleeps_is_woken_once),
        cmocka_unit_test(test_impossible_positions_are_refused),
        cmocka_unit_test(test_a_writer_that_scribbles),
        cmocka_unit_test(test_the_memory_cannot_shrink),
        cmocka_unit_test(test_wrong_memory_is_refused),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
