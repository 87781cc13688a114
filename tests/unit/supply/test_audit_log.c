/* test_audit_log.c - the audit log: what is written, and that every change is found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "supply/audit_check.h"
#include "supply/audit_log.h"

static char dir[64];

static const char *at(const char *name)
{
    static char paths[4][128];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
    return p;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_audit_log.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int teardown(void **state)
{
    char line[160];
    (void)state;
    snprintf(line, sizeof(line), "rm -rf '%s'", dir);
    return system(line);
}

static struct audit_log *open_log(const struct audit_log_opts *with)
{
    struct audit_log_opts o = with ? *with : (struct audit_log_opts){.dir = NULL};
    struct audit_log *a = NULL;
    struct err e = {0};
    o.dir = dir;
    if (audit_log_open(&a, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return a;
}

static void put(struct audit_log *a, int n)
{
    static const uint8_t sum[SHA256_BYTES] = {1, 2, 3};
    for (int i = 0; i < n; i++)
        audit_log_put(a, &(struct audit_entry){.kind = AUDIT_REQUEST,
                                               .client = "anna",
                                               .model = "reply \"x\"",
                                               .prompt = sum,
                                               .answer = sum,
                                               .decision = "answered",
                                               .took_ns = 12300000});
}

static int check(struct audit_check *c, struct err *e)
{
    *e = (struct err){0};
    return audit_check(c, dir, NULL, NULL, NULL, e);
}

static void whole(uint64_t lines, uint64_t torn)
{
    struct audit_check c;
    struct err e;
    if (check(&c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(c.n_lines, lines);
    assert_int_equal(c.n_torn, torn);
}

static void broken(const char *why)
{
    struct audit_check c;
    struct err e;
    assert_int_equal(check(&c, &e), SHOAL_EFORMAT);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void load(struct buf *b, const char *name)
{
    buf_init(b, (size_t)1 << 24);
    assert_int_equal(file_read(at(name), b, NULL), 0);
}

static void save(const char *name, const char *p, size_t n)
{
    FILE *f = fopen(at(name), "w");
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static char *line_at(const struct buf *b, int n)
{
    char *p = b->data;
    while (n-- > 1)
        p = strchr(p, '\n') + 1;
    return p;
}

#define FIRST "audit-000001.jsonl"

/* A log of eight lines: a checkpoint, six, a checkpoint. */
static void make(struct buf *b)
{
    struct audit_log *a = open_log(NULL);
    put(a, 6);
    audit_log_close(a);
    whole(8, 0);
    load(b, FIRST);
}

static void test_key_and_privacy(void **state)
{
    struct stat st;
    struct buf b;
    (void)state;
    make(&b);
    assert_int_equal(stat(at("audit.key"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_non_null(strstr(b.data, "\"client\":\"anna\",\"model\":\"reply \\\"x\\\"\""));
    assert_non_null(strstr(b.data, "\"ms\":12.3"));
    buf_fini(&b);
    /* a key that others can read is no key */
    assert_int_equal(chmod(at("audit.key"), 0644), 0);
    struct audit_log *a;
    struct err e = {0};
    const struct audit_log_opts o = {.dir = dir};
    assert_int_equal(audit_log_open(&a, &o, &e), SHOAL_EINVAL);
}

static void test_changed_bytes(void **state)
{
    struct audit_check c;
    struct err e;
    struct buf b;
    char word[24];
    (void)state;
    make(&b);
    for (size_t i = 0, line = 1; i < b.len; i++) {
        if (b.data[i] == '\n') {
            line++;
            continue;
        }
        b.data[i] = (char)(b.data[i] ^ 1);
        save(FIRST, b.data, b.len);
        if (check(&c, &e) == 0)
            fail_msg("byte %zu of line %zu", i, line);
        snprintf(word, sizeof(word), "line %zu: ", line);
        /* the chain of a line is also part of the next one */
        if (!strstr(e.msg, word) && c.line != line + 1 && line != 8)
            fail_msg("line %zu: %s", line, e.msg);
        b.data[i] = (char)(b.data[i] ^ 1);
    }
    save(FIRST, b.data, b.len);
    whole(8, 0);
    buf_fini(&b);
}

static void test_lost_reordered_repeated(void **state)
{
    struct buf b, x;
    (void)state;
    make(&b);
    char *third = line_at(&b, 3), *fourth = line_at(&b, 4), *fifth = line_at(&b, 5);
    buf_init(&x, (size_t)1 << 20);
    buf_put(&x, b.data, (size_t)(third - b.data)); /* lost */
    buf_puts(&x, fourth);
    save(FIRST, x.data, x.len);
    broken("line 3: it has the number 4, but 3 should follow: lines are lost");
    buf_clear(&x);
    buf_put(&x, b.data, (size_t)(third - b.data)); /* reordered */
    buf_put(&x, fourth, (size_t)(fifth - fourth));
    buf_put(&x, third, (size_t)(fourth - third));
    buf_puts(&x, fifth);
    save(FIRST, x.data, x.len);
    broken("line 3: ");
    buf_clear(&x);
    buf_put(&x, b.data, (size_t)(fourth - b.data)); /* repeated */
    buf_puts(&x, third);
    save(FIRST, x.data, x.len);
    broken("line 4: it has the number 3, but 4 should follow: lines were reordered");
    save(FIRST, b.data, (size_t)(fifth - b.data)); /* the end is lost */
    broken("its end is lost");
    save(FIRST, third, strlen(third)); /* the beginning */
    broken("line 1: the log does not begin with a checkpoint");
    buf_fini(&x);
    buf_fini(&b);
}

/* Whoever recomputes the chain has no key for the checkpoint. */
static void test_forged_chain(void **state)
{
    struct buf b, x;
    uint8_t chain[SHA256_BYTES] = {0};
    char hex[65];
    (void)state;
    make(&b);
    buf_init(&x, (size_t)1 << 20);
    for (int n = 1; n <= 8; n++) {
        char *p = line_at(&b, n), *tail = strstr(p, ",\"chain\":");
        char *anna = n == 4 ? strstr(p, "anna") : NULL;
        if (anna)
            memcpy(anna, "emma", 4);
        char *before = strstr(p, "\"before\":\"");
        if (before && before < tail) { /* as far as it goes */
            sha256_hex(hex, chain);
            memcpy(before + 10, hex, 64);
        }
        assert_true(audit_line_chain(chain, chain, p, (size_t)(tail - p)));
        sha256_hex(hex, chain);
        buf_put(&x, p, (size_t)(tail - p));
        buf_printf(&x, ",\"chain\":\"%s\"}\n", hex);
    }
    save(FIRST, x.data, x.len);
    broken("line 8: the checkpoint is not signed with this key");
    buf_fini(&x);
    buf_fini(&b);
}

static void test_killed(void **state)
{
    struct audit_log *a;
    struct buf b;
    (void)state;
    make(&b);
    FILE *f = fopen(at(FIRST), "a"); /* a process that was killed while it wrote */
    fprintf(f, "{\"n\":9,\"time\":\"20");
    fclose(f);
    whole(8, 1);
    a = open_log(NULL);
    put(a, 2);
    audit_log_close(a);
    whole(13, 1); /* restart, checkpoint, 2, checkpoint */
    buf_fini(&b);
    load(&b, FIRST);
    char *torn = line_at(&b, 9);
    memmove(torn + 3, torn + 4, strlen(torn + 4) + 1); /* one byte of the torn line is lost */
    save(FIRST, b.data, strlen(b.data));
    broken("line 9: it was changed");
    buf_fini(&b);
}

static void test_rotation(void **state)
{
    const struct audit_log_opts o = {.file_bytes = 4096, .keep = 3};
    struct audit_log *a = open_log(&o);
    struct audit_check c;
    struct err e;
    (void)state;
    put(a, 100);
    audit_log_close(a);
    assert_int_equal(access(at(FIRST), F_OK), -1);
    assert_int_equal(check(&c, &e), 0);
    assert_int_equal(c.n_files, 3);
    assert_true(c.first > 1);
    a = open_log(&o);
    put(a, 1);
    audit_log_close(a);
    assert_int_equal(check(&c, &e), 0);
    /* a file in between is lost */
    char name[32];
    unsigned last = 0;
    sscanf(c.file, "audit-%6u", &last);
    snprintf(name, sizeof(name), AUDIT_LOG_FILE, last - 1);
    assert_int_equal(unlink(at(name)), 0);
    broken("lines are lost");
}

static void test_full_disk(void **state)
{
    struct rlimit was, little;
    struct audit_log_opts o = {.serve_when_full = false};
    struct audit_check c;
    struct err e;
    struct stat st;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    struct audit_log *a = open_log(&o);
    put(a, 1);
    assert_true(audit_log_ready(a));
    assert_int_equal(stat(at(FIRST), &st), 0);
    little = (struct rlimit){(rlim_t)st.st_size + 50, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    put(a, 3); /* the first of them would be torn */
    assert_false(audit_log_ready(a));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_true(audit_log_ready(a)); /* there is room again */
    put(a, 1);
    audit_log_close(a);
    assert_int_equal(check(&c, &e), 0);
    assert_int_equal(c.n_lost, 3);
    assert_int_equal(c.n_lines, 5); /* checkpoint, 1, lost, 1, checkpoint */
    o.serve_when_full = true;
    a = open_log(&o);
    assert_true(audit_log_ready(a));
    audit_log_close(a);
}

static void test_one_process(void **state)
{
    const struct audit_log_opts o = {.dir = dir};
    struct audit_log *a = open_log(NULL), *b = NULL;
    struct err e = {0};
    (void)state;
    assert_int_equal(audit_log_open(&b, &o, &e), SHOAL_EBUSY);
    audit_log_close(a);
}

/* Refusals without a key must not fill the disk. */
static void test_flood(void **state)
{
    struct audit_log *a = open_log(NULL);
    struct audit_check c;
    struct err e;
    (void)state;
    for (int i = 0; i < 5000; i++)
        audit_log_put(a, &(struct audit_entry){.kind = AUDIT_REFUSED, .reason = "x"});
    audit_log_close(a);
    assert_int_equal(check(&c, &e), 0);
    assert_true(c.n_lines < 5000);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_key_and_privacy), TEST(test_changed_bytes), TEST(test_lost_reordered_repeated),
        TEST(test_forged_chain),    TEST(test_killed),        TEST(test_rotation),
        TEST(test_full_disk),       TEST(test_one_process),   TEST(test_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
