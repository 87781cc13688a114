/* test_worker_link.c - a worker as an event loop sees it, with the worker's end of the connection
 * in the test's hands: what it sends, in which pieces, and what becomes of the requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/messages/event_pb.h"
#include "cluster/messages/request_pb.h"
#include "cluster/worker/ring.h"
#include "cluster/worker/worker_frame.h"
#include "cluster/worker/worker_link.h"
#include "cluster/worker/workers.h"
#include "net/loop.h"
#include "support/recorder.h"

#define RING_BYTES 4096u

static struct {
    struct loop *loop;
    struct flow flow;
    struct flow_owner owner;
    struct worker_link *link;
    /* the worker's side */
    int sock, wake_fd;
    struct ring ring;
    struct buf in;
} site;

static struct recorder first, second;

/* ---- the worker ---- */

static void connect_worker(void)
{
    struct workers_conn c = {.serial = 1, .name = "m"};
    struct err e = {0};
    int pair[2];
    assert_int_equal(ring_memory(&c.ring_fd, RING_BYTES, &e), 0);
    assert_int_equal(ring_open(&site.ring, c.ring_fd, &e), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    site.sock = pair[1];
    c.sock = pair[0];
    c.wake_fd = eventfd(0, EFD_NONBLOCK);
    site.wake_fd = dup(c.wake_fd);
    buf_clear(&site.in);
    if (worker_link_connect(site.link, &c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(worker_link_ready(site.link));
}

static void hang_up(void)
{
    close(site.sock);
    close(site.wake_fd);
    ring_close(&site.ring);
}

/* Writes to the ring as a worker does; returns how much of it fitted. */
static size_t say(const void *p, size_t n)
{
    const uint64_t one = 1;
    bool wake = false;
    size_t fits = ring_write(&site.ring, p, n, &wake);
    if (wake)
        assert_int_equal(write(site.wake_fd, &one, sizeof(one)), sizeof(one));
    return fits;
}

static void say_frame(enum worker_frame_kind kind, uint64_t id, const struct buf *events)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    worker_frame_put(&b, kind, id, events ? events->data : NULL, events ? events->len : 0);
    assert_int_equal(say(b.data, b.len), b.len);
    buf_fini(&b);
}

static void put_start(struct buf *b)
{
    const struct sink_start s = {.model = "m", .version = "v1"};
    event_pb_put_start(b, &s);
}

static void put_token(struct buf *b, int32_t token, const char *text)
{
    const struct sink_token t = {.token = token, .text = text, .text_bytes = strlen(text)};
    event_pb_put_token(b, &t);
}

static void put_done(struct buf *b, uint32_t n)
{
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP, .generated_tokens = n, .last = true};
    event_pb_put_done(b, &d);
}

static void turn(void)
{
    for (int i = 0; i < 8; i++)
        loop_turn(site.loop, 0);
}

/* The next frame that the worker received; its bytes stay until the next call. */
static struct worker_frame heard(void)
{
    struct worker_frame f = {0};
    turn();
    char *room = buf_room(&site.in, 1 << 16);
    assert_non_null(room);
    ssize_t n = recv(site.sock, room, 1 << 16, 0);
    if (n > 0)
        buf_used(&site.in, (size_t)n);
    if (worker_frame_next(&f, site.in.data, site.in.len) <= 0)
        return (struct worker_frame){0};
    static uint8_t kept[1 << 16];
    assert_true(f.n <= sizeof(kept));
    memcpy(kept, f.p, f.n);
    f.p = kept;
    memmove(site.in.data, site.in.data + f.bytes, site.in.len - f.bytes);
    site.in.len -= f.bytes;
    return f;
}

/* ---- the server ---- */

static struct request *prompt(const char *text)
{
    struct request *r = flow_take_request(&site.owner);
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    p->text = request_copy(r, text, strlen(text));
    p->text_bytes = strlen(text);
    r->kind = REQUEST_GENERATE;
    r->generate.prompts = p;
    r->generate.n_prompts = r->generate.n = 1;
    r->generate.max_tokens = 7;
    return r;
}

/* Sends a request; returns the id under which the worker got it. */
static uint64_t run(struct recorder *rec, const char *text)
{
    struct request *r = prompt(text);
    struct replica *p = worker_link_replica(site.link);
    recorder_init(rec);
    p->ops->run(p, &site.owner, r, &rec->sink);
    struct worker_frame f = heard();
    assert_int_equal(f.kind, WORKER_FRAME_RUN);
    struct request *got = flow_take_request(&site.owner);
    struct err e = {0};
    assert_int_equal(request_pb_read(got, f.p, f.n, clock_ns(), &e), 0);
    assert_string_equal(got->generate.prompts[0].text, text);
    assert_int_equal(got->generate.max_tokens, 7);
    flow_give_request(&site.owner, got);
    flow_give_request(&site.owner, r);
    return f.id;
}

static int open_site(void **state)
{
    struct err e = {0};
    (void)state;
    memset(&site, 0, sizeof(site));
    assert_int_equal(loop_create(&site.loop, &e), 0);
    flow_owner_init(&site.owner, &site.flow, loop_executor(site.loop));
    assert_int_equal(worker_link_create(&site.link, site.loop, "m", &e), 0);
    buf_init(&site.in, 1 << 20);
    connect_worker();
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    worker_link_destroy(site.link);
    assert_int_equal(site.owner.n_jobs, 0);
    hang_up();
    buf_fini(&site.in);
    flow_owner_fini(&site.owner);
    loop_destroy(site.loop);
    return 0;
}

/* ---- tests ---- */

/* Events reach the request with their id, however they are cut into pieces of the stream. */
static void test_events_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 80; piece += 13) {
        struct buf a, b, out;
        uint64_t id1 = run(&first, "one"), id2 = run(&second, "two");
        assert_true(id1 != id2);
        assert_int_equal(site.owner.n_jobs, 2);
        buf_init(&a, 1 << 16);
        buf_init(&b, 1 << 16);
        buf_init(&out, 1 << 16);
        put_start(&a);
        put_token(&a, 5, "ab");
        put_start(&b);
        put_token(&b, 6, "xy");
        put_token(&b, 7, "z");
        worker_frame_put(&out, WORKER_FRAME_EVENTS, id1, a.data, a.len);
        worker_frame_put(&out, WORKER_FRAME_EVENTS, id2, b.data, b.len);
        buf_clear(&a);
        put_token(&a, 8, "cd");
        put_done(&a, 2);
        worker_frame_put(&out, WORKER_FRAME_EVENTS, id1, a.data, a.len);
        worker_frame_put(&out, WORKER_FRAME_CLOSED, id1, NULL, 0);
        for (size_t at = 0; at < out.len; at += piece) {
            size_t n = out.len - at < piece ? out.len - at : piece;
            assert_int_equal(say(out.data + at, n), n);
            turn();
        }
        assert_string_equal(first.text[0], "abcd");
        assert_string_equal(first.model, "m");
        assert_int_equal(first.n_of[0], 2);
        assert_int_equal(first.n_last, 1);
        assert_int_equal(first.n_closed, 1);
        assert_int_equal(first.n_fails, 0);
        assert_true(first.n_flushes > 0);
        assert_null(first.sink.job);
        assert_string_equal(second.text[0], "xyz");
        assert_int_equal(second.n_closed, 0);
        assert_int_equal(site.owner.n_jobs, 1);
        flow_cancel(&second.sink);
        assert_int_equal(second.n_closed, 0); /* not from within */
        struct worker_frame f = heard();
        assert_int_equal(f.kind, WORKER_FRAME_CANCEL);
        assert_int_equal(f.id, id2);
        assert_int_equal(second.n_closed, 1);
        assert_int_equal(second.n_fails, 0);
        assert_int_equal(site.owner.n_jobs, 0);
        /* The worker did not know yet: what it still sends is nobody's. */
        buf_clear(&b);
        put_token(&b, 9, "late");
        say_frame(WORKER_FRAME_EVENTS, id2, &b);
        say_frame(WORKER_FRAME_CLOSED, id2, NULL);
        turn();
        assert_true(worker_link_ready(site.link));
        assert_string_equal(second.text[0], "xyz");
        assert_int_equal(heard().kind, 0);
        buf_fini(&a);
        buf_fini(&b);
        buf_fini(&out);
    }
}

/* A request that ended by itself is not cancelled in the worker. */
static void test_the_end_of_one_is_not_told(void **state)
{
    struct buf b;
    (void)state;
    uint64_t id = run(&first, "one");
    buf_init(&b, 1 << 16);
    put_start(&b);
    put_done(&b, 0);
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    say_frame(WORKER_FRAME_CLOSED, id, NULL);
    assert_int_equal(heard().kind, 0);
    assert_int_equal(first.n_closed, 1);
    buf_fini(&b);
}

/* A closed request without an end has failed; it can be tried elsewhere. */
static void test_breaks_off(void **state)
{
    (void)state;
    uint64_t id = run(&first, "one");
    say_frame(WORKER_FRAME_CLOSED, id, NULL);
    turn();
    assert_int_equal(first.n_fails, 1);
    assert_string_equal(first.reason, REPLICA_LOST);
    assert_int_equal(first.failure.kind, FAILURE_UNAVAILABLE);
    assert_non_null(strstr(first.failure.message, "the worker of the model 'm': it broke off"));
    assert_int_equal(first.n_closed, 1);
    assert_true(worker_link_ready(site.link));
}

/* A slow reader: the worker is told once to wait, events are kept in order, and told once to
 * continue. */
static void test_a_slow_reader(void **state)
{
    struct buf b;
    (void)state;
    uint64_t id = run(&first, "one");
    buf_init(&b, 1 << 16);
    put_start(&b);
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    turn();
    assert_int_equal(first.n_starts, 1);
    assert_int_equal(heard().kind, 0);
    first.full = true;
    for (int i = 0; i < 3; i++) {
        char text[2] = {(char)('a' + i), '\0'};
        buf_clear(&b);
        put_token(&b, i, text);
        say_frame(WORKER_FRAME_EVENTS, id, &b);
        struct worker_frame f = heard();
        assert_int_equal(f.kind, i == 0 ? WORKER_FRAME_PAUSE : 0);
        assert_true(i > 0 || f.id == id);
        assert_int_equal(first.n_tokens, 0);
    }
    flow_resume(&first.sink); /* still full */
    assert_int_equal(first.n_tokens, 0);
    assert_int_equal(heard().kind, 0);
    first.full = false;
    uint32_t n = first.n_flushes;
    flow_resume(&first.sink);
    assert_string_equal(first.text[0], "abc");
    assert_true(first.n_flushes > n);
    struct worker_frame f = heard();
    assert_int_equal(f.kind, WORKER_FRAME_RESUME);
    assert_int_equal(f.id, id);
    flow_resume(&first.sink); /* nothing is held: nothing to say */
    assert_int_equal(heard().kind, 0);
    /* The end that waits behind a slow reader. */
    first.full = true;
    buf_clear(&b);
    put_done(&b, 3);
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    say_frame(WORKER_FRAME_CLOSED, id, NULL);
    assert_int_equal(heard().kind, WORKER_FRAME_PAUSE);
    assert_int_equal(first.n_closed, 0);
    first.full = false;
    flow_resume(&first.sink);
    turn();
    assert_int_equal(first.n_last, 1);
    assert_int_equal(first.n_closed, 1);
    assert_int_equal(first.n_fails, 0);
    buf_fini(&b);
}

/* Invalid events behind a slow reader fail the request when they are read. */
static void test_damage_behind_a_slow_reader(void **state)
{
    struct buf b;
    (void)state;
    uint64_t id = run(&first, "one");
    buf_init(&b, 1 << 16);
    put_start(&b);
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    turn();
    first.full = true;
    buf_clear(&b);
    put_token(&b, 1, "a");
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    buf_clear(&b);
    buf_puts(&b, "\xff\xff\xff");
    say_frame(WORKER_FRAME_EVENTS, id, &b);
    turn();
    first.full = false;
    flow_resume(&first.sink);
    turn();
    assert_string_equal(first.text[0], "a");
    assert_int_equal(first.n_fails, 1);
    assert_non_null(strstr(first.failure.message, "it sent a damaged message"));
    assert_int_equal(first.n_closed, 1);
    buf_fini(&b);
}

/* A worker that sends what none sends is disconnected, and its requests can be tried elsewhere. */
static void test_invalid_data(void **state)
{
    (void)state;
    enum { EVENTS, KIND, TO_WORKER, POSITION, SOCKET, N_WAYS };
    for (int way = 0; way < N_WAYS; way++) {
        struct buf b;
        const uint8_t unknown[WORKER_FRAME_HEAD_BYTES] = {0, 0, 0, 0, 99};
        const bool by_socket = way == SOCKET;
        if (way > 0) {
            hang_up();
            connect_worker();
        }
        uint64_t id = run(&first, "one");
        (void)run(&second, "two");
        flow_cancel(&second.sink); /* is closing: not failed again */
        buf_init(&b, 1 << 16);
        buf_puts(&b, "\xff\xff\xff");
        if (way == EVENTS)
            say_frame(WORKER_FRAME_EVENTS, id, &b);
        else if (way == KIND)
            assert_int_equal(say(unknown, sizeof(unknown)), sizeof(unknown));
        else if (way == TO_WORKER)
            say_frame(WORKER_FRAME_ROOM, id, NULL);
        else if (way == POSITION) /* the writer's is first: more than the ring can hold */
            *(uint64_t *)(void *)site.ring.shared += (uint64_t)1 << 40;
        else if (by_socket)
            assert_int_equal(send(site.sock, "x", 1, 0), 1);
        if (way == POSITION) {
            const uint64_t one = 1;
            assert_int_equal(write(site.wake_fd, &one, sizeof(one)), sizeof(one));
        }
        turn();
        if (worker_link_ready(site.link))
            fail_msg("way %d: still connected", way);
        assert_int_equal(first.n_fails, 1);
        assert_string_equal(first.reason, REPLICA_ENDED);
        assert_non_null(strstr(first.failure.message, by_socket ? "it sent an unexpected message"
                                                                : "it sent a damaged message"));
        assert_int_equal(first.n_closed, 1);
        assert_int_equal(second.n_fails, 0);
        assert_int_equal(second.n_closed, 1);
        assert_int_equal(site.owner.n_jobs, 0);
        buf_fini(&b);
    }
}

static uint32_t n_ended_seen;

static void on_ended(struct sink *s, const struct failure *f)
{
    n_ended_seen = worker_link_replica(site.link)->n_ended;
    recorder_on_fail(s, f);
}

/* The worker ends: what it said before counts, the requests that it had learn how many were cut
 * off, and a new one fails at once. */
static void test_the_worker_ends(void **state)
{
    struct buf b;
    (void)state;
    uint64_t id1 = run(&first, "one");
    (void)run(&second, "two");
    struct sink_ops ops = *second.sink.ops;
    ops.fail = on_ended;
    second.sink.ops = &ops;
    buf_init(&b, 1 << 16);
    put_start(&b);
    put_token(&b, 5, "ab");
    put_done(&b, 1);
    worker_frame_put(&site.in, WORKER_FRAME_EVENTS, id1, b.data, b.len);
    worker_frame_put(&site.in, WORKER_FRAME_CLOSED, id1, NULL, 0);
    bool wake;
    assert_int_equal(ring_write(&site.ring, site.in.data, site.in.len, &wake), site.in.len);
    buf_clear(&site.in);
    shutdown(site.sock, SHUT_RDWR); /* without waking the reader of the ring */
    turn();
    assert_string_equal(first.text[0], "ab");
    assert_int_equal(first.n_last, 1);
    assert_int_equal(first.n_fails, 0);
    assert_int_equal(first.n_closed, 1);
    assert_int_equal(second.n_fails, 1);
    assert_string_equal(second.reason, REPLICA_ENDED);
    assert_non_null(strstr(second.failure.message, "it ended"));
    assert_int_equal(second.n_closed, 1);
    assert_int_equal(n_ended_seen, 1);
    assert_int_equal(worker_link_replica(site.link)->n_ended, 0);
    assert_false(worker_link_ready(site.link));
    assert_int_equal(site.owner.n_jobs, 0);

    struct request *r = prompt("three");
    struct replica *p = worker_link_replica(site.link);
    recorder_init(&first);
    p->ops->run(p, &site.owner, r, &first.sink);
    assert_int_equal(first.n_fails, 1);
    assert_string_equal(first.reason, REPLICA_LOST);
    assert_non_null(strstr(first.failure.message, "it is not running"));
    assert_int_equal(first.n_closed, 1);
    assert_int_equal(site.owner.n_jobs, 0);
    flow_give_request(&site.owner, r);

    hang_up(); /* and the next one works */
    connect_worker();
    id1 = run(&first, "four");
    buf_clear(&b);
    put_start(&b);
    put_done(&b, 0);
    say_frame(WORKER_FRAME_EVENTS, id1, &b);
    say_frame(WORKER_FRAME_CLOSED, id1, NULL);
    turn();
    assert_int_equal(first.n_last, 1);
    assert_int_equal(first.n_fails, 0);
    buf_fini(&b);
}

/* A worker that starts again before the end of the old one was seen. */
static void test_started_again(void **state)
{
    (void)state;
    (void)run(&first, "one");
    hang_up();
    connect_worker();
    turn();
    assert_int_equal(first.n_fails, 1);
    assert_string_equal(first.reason, REPLICA_ENDED);
    assert_non_null(strstr(first.failure.message, "it was started again"));
    assert_int_equal(first.n_closed, 1);
    assert_true(worker_link_ready(site.link));
    assert_int_equal(heard().kind, 0); /* the new one knows nothing of it */
}

/* The ring is smaller than the answer: the worker waits for room, and is told when there is some.
 */
static void test_a_full_ring(void **state)
{
    struct buf b, out;
    char text[2001];
    size_t at = 0;
    uint32_t n_rooms = 0;
    (void)state;
    uint64_t id = run(&first, "one");
    buf_init(&b, 1 << 20);
    buf_init(&out, 1 << 20);
    put_start(&b);
    worker_frame_put(&out, WORKER_FRAME_EVENTS, id, b.data, b.len);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    buf_clear(&b);
    for (int i = 0; i < 2; i++)
        put_token(&b, i, text);
    worker_frame_put(&out, WORKER_FRAME_EVENTS, id, b.data, b.len);
    buf_clear(&b);
    put_done(&b, 2);
    worker_frame_put(&out, WORKER_FRAME_EVENTS, id, b.data, b.len);
    worker_frame_put(&out, WORKER_FRAME_CLOSED, id, NULL, 0);
    assert_true(out.len > site.ring.cap);
    for (int i = 0; i < 10 && at < out.len; i++) {
        size_t n = say(out.data + at, out.len - at);
        at += n;
        struct worker_frame f = heard();
        if (at < out.len || f.kind != 0) {
            assert_int_equal(f.kind, WORKER_FRAME_ROOM);
            assert_int_equal(f.id, 0);
            n_rooms++;
        }
    }
    assert_int_equal(at, out.len);
    assert_true(n_rooms > 0);
    assert_int_equal(strlen(first.text[0]), 4000);
    assert_int_equal(first.n_closed, 1);
    assert_int_equal(first.n_fails, 0);
    buf_fini(&b);
    buf_fini(&out);
}

/* A request that is larger than the socket's buffer arrives whole, and in front of what follows. */
static void test_a_large_request(void **state)
{
    (void)state;
    const size_t n_bytes = (size_t)4 << 20;
    char *text = mem_alloc(n_bytes + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n_bytes; i++)
        text[i] = (char)('a' + i % 26);
    text[n_bytes] = '\0';
    struct request *r = prompt(text), *got = flow_take_request(&site.owner);
    struct replica *p = worker_link_replica(site.link);
    recorder_init(&first);
    p->ops->run(p, &site.owner, r, &first.sink);
    flow_cancel(&first.sink);
    struct buf in;
    struct worker_frame f = {0};
    struct err e = {0};
    buf_init(&in, (size_t)16 << 20);
    while (worker_frame_next(&f, in.data, in.len) == 0) {
        turn();
        char *room = buf_room(&in, 1 << 16);
        ssize_t n = recv(site.sock, room, 1 << 16, 0);
        if (n > 0)
            buf_used(&in, (size_t)n);
    }
    assert_int_equal(f.kind, WORKER_FRAME_RUN);
    assert_int_equal(request_pb_read(got, f.p, f.n, clock_ns(), &e), 0);
    assert_string_equal(got->generate.prompts[0].text, text);
    buf_put(&site.in, in.data + f.bytes, in.len - f.bytes);
    f = heard();
    assert_int_equal(f.kind, WORKER_FRAME_CANCEL);
    assert_int_equal(first.n_closed, 1);
    buf_fini(&in);
    flow_give_request(&site.owner, got);
    flow_give_request(&site.owner, r);
    mem_free(text);
}

/* Destroying it ends its requests at once. */
static void test_destroyed_with_requests(void **state)
{
    (void)state;
    (void)run(&first, "one");
    (void)run(&second, "two");
    flow_cancel(&second.sink);
    worker_link_destroy(site.link);
    site.link = NULL;
    assert_int_equal(first.n_fails, 1);
    assert_non_null(strstr(first.failure.message, "this server stops"));
    assert_int_equal(first.n_closed, 1);
    assert_int_equal(second.n_closed, 1);
    assert_int_equal(site.owner.n_jobs, 0);
    turn();
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_events_in_any_pieces),
        TEST(test_the_end_of_one_is_not_told),
        TEST(test_breaks_off),
        TEST(test_a_slow_reader),
        TEST(test_damage_behind_a_slow_reader),
        TEST(test_invalid_data),
        TEST(test_the_worker_ends),
        TEST(test_started_again),
        TEST(test_a_full_ring),
        TEST(test_a_large_request),
        TEST(test_destroyed_with_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
