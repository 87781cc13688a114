/* test_command_scripts.c - what commands print, by the scripts of tests/data/commands.  A script is
 * text of blocks that begin with "== ":
 *     == file NAME        a file of the current folder, which is empty at first
 *     == run CODE WORDS   a command with its exit code; words of blanks are in 'quotes', $ is the
 *                         folder of test data
 *     == in               what it reads from stdin (nothing)
 *     == reply STATUS     what a server at unix:sock answers to its next request, here with the
 *                         body of the answer; without one it answers 500
 *     == out              what it writes to stdout and stderr, then the requests to the server
 * Numbers that differ from run to run are written as T.  SHOAL_GOLDEN=1 writes the outputs of the
 * program into the scripts of the source tree. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "support/script.h"

#define MAX_WORDS 48

static char dir[64];

/* ---- scripts ---- */

/* The words of a command; returns how many. */
static int split(const char *line, char *room, size_t cap, const char **words)
{
    int n = 0;
    size_t k = 0;
    bool inside = false, quoted = false;
    for (const char *p = line; *p; p++) {
        if (*p == ' ' && !quoted) {
            room[k++] = '\0';
            inside = false;
            continue;
        }
        assert_true(n < MAX_WORDS && k + sizeof(SHOAL_TEST_DATA) + 2 < cap);
        if (!inside)
            words[n++] = room + k;
        inside = true;
        if (*p == '\'')
            quoted = !quoted;
        else if (*p == '$' && !quoted)
            k += (size_t)snprintf(room + k, cap - k, "%s", SHOAL_TEST_DATA);
        else
            room[k++] = *p;
    }
    room[k] = '\0';
    return n;
}

/* ---- a server ---- */

static struct {
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    struct {
        char status[16];
        const char *body;
        size_t n;
    } replies[16]; /* in order */
    uint32_t n_replies, n_sent;
    struct buf seen; /* the requests */
} server;

/* Reads one request: its head, then as many bytes as it announces. */
static bool read_request(int fd, struct buf *b)
{
    for (size_t want = 0; want == 0 || b->len < want;) {
        char *room = buf_room(b, 65536);
        const ssize_t n = read(fd, room, 65536);
        if (n <= 0)
            return false;
        buf_used(b, (size_t)n);
        const char *end = strstr(buf_str(b), "\r\n\r\n");
        const char *length = strcasestr(buf_str(b), "content-length: ");
        if (end)
            want = (size_t)(end + 4 - b->data) +
                   (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
    }
    return true;
}

static void answer(int fd)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    if (read_request(fd, &b)) {
        const char *line = buf_str(&b), *body = strstr(line, "\r\n\r\n") + 4;
        pthread_mutex_lock(&server.lock);
        const bool has = server.n_sent < server.n_replies;
        const char *status = has ? server.replies[server.n_sent].status : "500";
        const size_t n = has ? server.replies[server.n_sent].n : 0;
        buf_printf(&server.seen, "> %.*s %s\n", (int)(strstr(line, " HTTP/") - line), line, body);
        dprintf(fd,
                "HTTP/1.1 %s X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n%.*s",
                status, n, (int)n, has ? server.replies[server.n_sent].body : "");
        server.n_sent += has;
        pthread_mutex_unlock(&server.lock);
    }
    buf_fini(&b);
    close(fd);
}

static void *serve(void *arg)
{
    for (int fd; (fd = accept(server.fd, NULL, NULL)) >= 0;)
        answer(fd);
    return arg;
}

static void start_server(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sock"};
    server.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(server.fd, 8), 0);
    pthread_mutex_init(&server.lock, NULL);
    buf_init(&server.seen, 1 << 20);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void stop_server(void)
{
    shutdown(server.fd, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.fd);
    buf_fini(&server.seen);
}

/* ---- outputs ---- */

/* What differs from run to run and from machine to machine. */
static const struct script_differs differs[] = {
    {"_ms\":|_s\":|\"ms\":|seconds\":|_mib\":|scratch_bytes\":|threads\":|compute\":|seed\":",
     "[0-9.e+-]+", ""},
    {"\"p50\":|\"p95\":|\"p99\":|p50 |p95 |p99 ", "[0-9.e+-]+", ""},
    {"Shoal CA |serial +|sha-256 +|serial\":\"|sha256\":\"|\n|  ", "[0-9A-F]{11,}",
     ""}, /* of a CA */
    {"Shoal CA ", "[0-9a-f]{6,16}", ""},
    {"", "20[0-9][0-9]-[0-9-]+ [0-9:]+ UTC", ""},
    {"", "20[0-9][0-9]-[0-9-]+ [0-9:]{5}", "  "},
    {"", "[0-9a-f-]+ +[0-9.]+ [KM]iB", "  - +included"}, /* models come and go */
    {"\"sha256\":\"", "[0-9a-f]*\",\"bytes\":[0-9]+", ",\"added_s\":T,\"source\":\"included"},
    {"not_before_s\":|not_after_s\":|days_left\":", "[0-9]+", ""},
    {"step_ms_min\":|step_ms_p50\":|step_ms_max\":|load_ms\":", "[0-9.e+-]+", ""},
    {"kernels\":\"|engine\":\"", "[a-z0-9-]+", "\""},
    {"\n  peak_rss_mib +|\n  seconds +|\n  small_compute +", "[0-9.]+", "\n"},
    {"peak memory |scratch |tokens\\) = | MiB = ", "[0-9.]+ [KM]iB", ""},
    {" ", "[0-9.]+", " ms| tokens/s| rows/s| texts/s| MB/s| GB/s"},
    {" in ", "[0-9.]+", " s\n"},
    {"\\(", "[0-9.]+", " s on this machine"},
    {"%", " +[0-9.]+", " %\n"},
    {" - ", " +[0-9.]+", " %\n"},
    {"ms, ", "[a-z0-9-]+ kernels, [0-9]+ threads?, seed [0-9]+", ""},
};

/* Runs a command; returns its exit code. */
static int run(const char *line, const char *in, size_t n_in, struct buf *out)
{
    char room[4096], piece[4096];
    const char *words[MAX_WORDS];
    const int n = split(line, room, sizeof(room), words);
    assert_true(n > 0);
    const struct command *c = commands_find(commands_all, words[0]);
    if (!c)
        fail_msg("there is no command %s", words[0]);
    FILE *from = tmpfile(), *to = tmpfile();
    assert_true(from && to);
    assert_int_equal(fwrite(in, 1, n_in, from), n_in);
    rewind(from);
    fflush(NULL);
    const int keep[] = {dup(0), dup(1), dup(2)};
    rewind(stdin);
    assert_true(dup2(fileno(from), 0) >= 0 && dup2(fileno(to), 1) >= 0 && dup2(fileno(to), 2) >= 0);
    clearerr(stdin);
    const int rc = commands_run(c, n - 1, words + 1);
    fflush(NULL);
    for (int i = 0; i < 3; i++) {
        assert_true(dup2(keep[i], i) >= 0);
        close(keep[i]);
    }
    struct buf raw;
    buf_init(&raw, 1 << 24);
    rewind(to);
    for (size_t k; (k = fread(piece, 1, sizeof(piece), to)) > 0;)
        buf_put(&raw, piece, k);
    fclose(to);
    fclose(from);
    script_replace(&raw, SHOAL_TEST_DATA, "$");
    script_replace(&raw, dir, "~");
    script_hide(&raw, differs, sizeof(differs) / sizeof(differs[0]));
    if (raw.len > 0 && raw.data[raw.len - 1] != '\n')
        buf_puts(&raw, "\\\n"); /* the line has no end */
    *out = raw;
    return rc;
}

/* Runs a script; returns how many commands were wrong.  golden: the script with the program's
 * outputs, or NULL. */
static size_t run_script(const char *name, const char *text, struct buf *golden)
{
    size_t n_wrong = 0;
    struct script_block b, next;
    const char *p = text;
    while (script_next(&p, &b)) {
        struct buf out;
        int code;
        if (golden && strncmp(b.head, "out", 3) != 0)
            buf_printf(golden, "== %s\n%.*s", b.head, (int)b.n, b.body);
        if (strncmp(b.head, "file ", 5) == 0)
            script_write(b.head + 5, b.body, b.n);
        if (strncmp(b.head, "reply ", 6) == 0) {
            assert_true(server.n_replies < 16);
            snprintf(server.replies[server.n_replies].status, 16, "%s", b.head + 6);
            server.replies[server.n_replies].body = b.body;
            server.replies[server.n_replies++].n = b.n;
        }
        if (strncmp(b.head, "run ", 4) != 0)
            continue;
        const char *line = strchr(b.head + 4, ' ');
        assert_non_null(line);
        code = atoi(b.head + 4);
        const char *in = "";
        size_t n_in = 0;
        const char *look = p;
        if (script_next(&look, &next) && strcmp(next.head, "in") == 0) {
            in = next.body;
            n_in = next.n;
            if (golden)
                buf_printf(golden, "== in\n%.*s", (int)n_in, in);
            p = look;
        }
        const int rc = run(line + 1, in, n_in, &out);
        pthread_mutex_lock(&server.lock); /* it may still be behind its last answer */
        buf_put(&out, server.seen.data, server.seen.len);
        buf_clear(&server.seen);
        server.n_replies = server.n_sent = 0;
        pthread_mutex_unlock(&server.lock);
        if (golden) {
            buf_printf(golden, "== out\n%s", buf_str(&out));
            if (rc != code)
                fprintf(stderr, "%s: shoal %s: exit code %d\n", name, line + 1, rc);
            buf_fini(&out);
            continue;
        }
        const bool has_out = script_next(&p, &next) && strcmp(next.head, "out") == 0;
        if (rc != code || !has_out || next.n != out.len ||
            memcmp(buf_str(&out), next.body, next.n) != 0) {
            fprintf(stderr, "%s: shoal %s: exit code %d, and it wrote\n%s\n", name, line + 1, rc,
                    buf_str(&out));
            n_wrong++;
        }
        buf_fini(&out);
    }
    assert_string_equal(p, ""); /* all of it was read */
    return n_wrong;
}

static size_t run_with_server(const char *name, const char *text, struct buf *golden)
{
    setenv("SHOAL_COLLECTIONS", dir, 1);
    start_server();
    const size_t n_wrong = run_script(name, text, golden);
    stop_server();
    return n_wrong;
}

static const char *script = "*"; /* all of them */

static void test_scripts(void **state)
{
    char pattern[512];
    (void)state;
    snprintf(pattern, sizeof(pattern), SHOAL_TEST_DATA "/commands/%s.txt", script);
    script_run_all(pattern, dir, run_with_server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripts)};
    script = argc > 1 ? argv[1] : script;
    signal(SIGPIPE, SIG_IGN); /* a client of the server may be gone */
    if (setenv("SHOAL_MODELS", SHOAL_TEST_DATA "/../../models", 1) != 0 ||
        setenv("SHOAL_CACHE_DIR", "", 1) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
