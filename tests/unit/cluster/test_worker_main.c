/* test_worker_main.c - a real worker process in its sandbox: this program, started as `shoal
 * worker`, is one.  Its answers equal those of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/worker/worker_main.h"
#include "cluster/worker/worker_pb.h"
#include "flow/flow_run.h"
#include "support/recorder.h"
#include "support/watchdog.h"
#include "support/worker_site.h"

#define CONTROL_FD 3
#define DECODER SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define CLASSIFIER SHOAL_TEST_DATA "/encoders/bert-cls"

static char dir[64];

static struct { /* models in this process, to compare with */
    struct registry *registry;
    struct flow flow;
    struct flow_owner owner;
} here;

static struct recorder got, want;

static int open_all(void **state)
{
    struct err e = {0};
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-worker-XXXXXX");
    assert_non_null(mkdtemp(dir));
    worker_site_open(dir, 4096); /* a small ring: it fills up */
    const struct registry_spec specs[] = {
        {.name = "decoder", .path = DECODER, .n_threads = 1, .n_ctx = 128},
        {.name = "classifier", .path = CLASSIFIER, .n_threads = 1},
    };
    const struct registry_opts ro = {.cache_dir = ""};
    assert_int_equal(registry_create(&here.registry, &ro, &e), 0);
    here.flow.registry = here.registry;
    flow_owner_init(&here.owner, &here.flow, loop_executor(worker_site.loop));
    here.owner.load_wait_ms = 60000;
    for (size_t i = 0; i < 2; i++) {
        struct registry_spec apart = specs[i];
        apart.apart = true;
        apart.apart_opts.nice = 1;
        worker_site_add(&apart);
        assert_int_equal(registry_add(here.registry, &specs[i], &e), 0);
    }
    return 0;
}

static int close_all(void **state)
{
    char command[96];
    (void)state;
    registry_destroy(here.registry);
    flow_owner_fini(&here.owner);
    worker_site_close();
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* The same request to the worker and to this process. */
static void run_both(void (*change)(struct request *r), const char *model, enum request_kind kind)
{
    struct dispatch *d = worker_site.owner.apart;
    struct request *r = worker_site_request(model, kind);
    recorder_init(&got);
    change(r);
    assert_true(d->ops->run(d, &worker_site.owner, r, &got.sink));
    worker_site_until_closed(&got);
    r = worker_site_request(model, kind);
    recorder_init(&want);
    change(r);
    flow_run_here(&here.owner, r, &want.sink);
    worker_site_until_closed(&want);
}

static void check_equal(void)
{
    assert_int_equal(got.n_fails, want.n_fails);
    assert_int_equal(got.failure.code, want.failure.code);
    assert_string_equal(got.failure.message, want.failure.message);
    if (want.n_fails == 0)
        assert_string_equal(got.model, want.model);
    assert_int_equal(got.n_tokens, want.n_tokens);
    assert_int_equal(got.n_logprobs, want.n_logprobs);
    assert_int_equal(got.n_results, want.n_results);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(got.labels[i], want.labels[i]);
    for (size_t i = 0; i < RECORDER_CHOICES; i++) {
        assert_string_equal(got.text[i], want.text[i]);
        assert_int_equal(got.n_of[i], want.n_of[i]);
        assert_memory_equal(got.tokens[i], want.tokens[i], sizeof(got.tokens[i]));
    }
    assert_int_equal(got.usage.prompt_tokens, want.usage.prompt_tokens);
    assert_int_equal(got.usage.generated_tokens, want.usage.generated_tokens);
    assert_int_equal(got.n_last, want.n_last);
}

static void as_it_is(struct request *r)
{
    (void)r;
}

static void three_choices(struct request *r)
{
    r->generate.n = 3;
    r->generate.max_tokens = 30;
    r->generate.sampling.temperature = 1.0f;
    r->generate.sampling.seed = 5;
    r->generate.seeded = r->generate.has_seed = true;
    r->generate.sampling.logprobs = 2;
}

static void too_long(struct request *r)
{
    r->generate.max_tokens = 4000;
}

static void no_such_labels(struct request *r)
{
    r->infer.labels = "none";
}

static void test_answers_are_the_same(void **state)
{
    (void)state;
    run_both(as_it_is, "decoder", REQUEST_GENERATE);
    check_equal();
    assert_int_equal(got.usage.generated_tokens, 8);
    run_both(three_choices, "decoder", REQUEST_GENERATE);
    check_equal();
    assert_true(got.n_logprobs > 0);
    assert_int_equal(got.n_done, 3);
    run_both(too_long, "decoder", REQUEST_GENERATE);
    check_equal();
    run_both(as_it_is, "classifier", REQUEST_INFER);
    check_equal();
    assert_int_equal(got.n_results, 2);
    run_both(no_such_labels, "classifier", REQUEST_INFER);
    assert_int_equal(got.n_fails + got.n_results, 1);
    check_equal();
    assert_int_equal(worker_site_seen("decoder").n_restarts, 0);
    assert_int_equal(worker_site_seen("decoder").n_ctx, 128);
    WAIT_UNTIL(worker_site_seen("decoder").prefill_ns > 0);
}

static void turns(int n)
{
    for (int i = 0; i < n; i++)
        loop_turn(worker_site.loop, 1);
}

/* A slow reader gets everything in the end; one that goes away does not disturb others. */
static void test_slow_and_gone(void **state)
{
    struct dispatch *d = worker_site.owner.apart;
    (void)state;
    run_both(three_choices, "decoder", REQUEST_GENERATE);
    for (int i = 0; i < 3; i++) {
        struct request *r = worker_site_request("decoder", REQUEST_GENERATE);
        three_choices(r);
        recorder_init(&got);
        got.full = true;
        assert_true(d->ops->run(d, &worker_site.owner, r, &got.sink));
        turns(20);
        assert_int_equal(got.n_tokens, 0);
        got.full = false;
        flow_resume(&got.sink);
        worker_site_until_closed(&got);
        check_equal();
    }
    for (uint32_t i = 1; i < 4; i++) {
        struct request *r = worker_site_request("decoder", REQUEST_GENERATE);
        three_choices(r);
        recorder_init(&got);
        got.cancel_at = RECORDER_TOKEN;
        got.after = i;
        assert_true(d->ops->run(d, &worker_site.owner, r, &got.sink));
        worker_site_until_closed(&got);
        assert_int_equal(got.n_fails, 0);
    }
    run_both(three_choices, "decoder", REQUEST_GENERATE);
    check_equal();
    assert_int_equal(worker_site_seen("decoder").n_restarts, 0);
}

/* The worker's own folder of the cache. */
static void test_cache_folder(void **state)
{
    char command[128], line[256] = "";
    struct stat st;
    (void)state;
    run_both(as_it_is, "decoder", REQUEST_GENERATE);
    snprintf(command, sizeof(command), "ls -d %s/worker-*", dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    pclose(f);
    line[strcspn(line, "\n")] = '\0';
    assert_int_equal(strlen(line), strlen(dir) + strlen("/worker-") + 16);
    assert_int_equal(stat(line, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* A file that is no model fails with the engine's reason. */
static void test_not_a_model(void **state)
{
    (void)state;
    enum registry_state s = REGISTRY_LOADING;
    struct registry_spec spec = {
        .name = "story", .path = SHOAL_TEST_DATA "/refs/story.txt", .apart = true, .pinned = true};
    worker_site_add(&spec);
    WAIT_UNTIL(registry_state(worker_site.registry, "story", &s) && s == REGISTRY_FAILED);
    assert_non_null(strstr(worker_site_seen("story").error, "story.txt"));
    assert_null(strstr(worker_site_seen("story").error, "gone"));
    assert_int_equal(worker_site_seen("story").n_restarts, 0);
}

/* What a worker answers to a server that does not send what it must. */
static int exit_code_with(const void *message, size_t n)
{
    int pair[2], status = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    if (n > 0)
        assert_int_equal(send(pair[0], message, n, 0), n);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        if (!freopen("/dev/null", "w", stderr))
            _exit(9);
        _exit(worker_main(pair[1]));
    }
    close(pair[1]);
    shutdown(pair[0], SHUT_WR);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(pair[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_started_by_hand(void **state)
{
    struct worker_start s = {.name = "m", .path = DECODER, .cache_dir = "", .n_links = 65};
    struct buf b;
    (void)state;
    assert_int_equal(exit_code_with(NULL, 0), 1);
    assert_int_equal(exit_code_with("\xff\xff", 2), 1);
    buf_init(&b, WORKER_PB_MAX_BYTES);
    assert_int_equal(worker_pb_put_start(&b, &s), 0);
    assert_int_equal(exit_code_with(b.data, b.len), 1); /* too many links */
    buf_clear(&b);
    s.n_links = 1;
    assert_int_equal(worker_pb_put_start(&b, &s), 0);
    assert_int_equal(exit_code_with(b.data, b.len), 1); /* no connection follows */
    buf_clear(&b);
    s.n_links = 0;
    s.parent = 1;
    assert_int_equal(worker_pb_put_start(&b, &s), 0);
    assert_int_equal(exit_code_with(b.data, b.len), 1); /* another server's */
    buf_clear(&b);
    s.parent = (uint32_t)getpid();
    assert_int_equal(worker_pb_put_start(&b, &s), 0);
    assert_int_equal(exit_code_with(b.data, b.len), 0); /* it serves until the server is gone */
    buf_fini(&b);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_all, close_all)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_started_by_hand),
        TEST(test_answers_are_the_same),
        TEST(test_slow_and_gone),
        TEST(test_cache_folder),
        TEST(test_not_a_model),
    };
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        _exit(worker_main(CONTROL_FD)); /* as the program does: its threads still run */
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
