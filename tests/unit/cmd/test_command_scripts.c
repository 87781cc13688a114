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
#include <glob.h>
#include <pthread.h>
#include <regex.h>
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

#define MAX_WORDS 48
#define SCRIPTS SHOAL_TEST_DATA "/commands/*.txt"

static char dir[64], home[512];

/* ---- scripts ---- */

struct block {
    char head[1024]; /* without "== " */
    const char *body;
    size_t n;
};

/* The block at *at, which moves behind it.  False: there is none. */
static bool next_block(const char **at, struct block *b)
{
    const char *p = *at;
    if (strncmp(p, "== ", 3) != 0)
        return false;
    size_t n = strcspn(p, "\n");
    assert_true(n > 3 && n - 3 < sizeof(b->head));
    snprintf(b->head, sizeof(b->head), "%.*s", (int)(n - 3), p + 3);
    p += n + (p[n] == '\n');
    const char *end = p;
    if (strncmp(p, "== ", 3) != 0) {
        end = strstr(p, "\n== ");
        end = end ? end + 1 : p + strlen(p);
    }
    b->body = p;
    b->n = (size_t)(end - p);
    *at = end;
    return true;
}

static void write_file(const char *name, const char *p, size_t n)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

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
static const struct {
    const char *before, *what, *after;
} differs[] = {
    {"_ms\":|_s\":|\"ms\":|seconds\":|_mib\":|scratch_bytes\":|threads\":|compute\":|seed\":",
     "[0-9.e+-]+", ""},
    {"\"p50\":|\"p95\":|\"p99\":|p50 |p95 |p99 ", "[0-9.e+-]+", ""},
    {"kernels\":\"|engine\":\"", "[a-z0-9-]+", "\""},
    {"\n  peak_rss_mib +|\n  seconds +|\n  small_compute +", "[0-9.]+", "\n"},
    {"peak memory |scratch |tokens\\) = | MiB = ", "[0-9.]+ [KM]iB", ""},
    {" ", "[0-9.]+", " ms| tokens/s| rows/s| texts/s| MB/s| GB/s"},
    {" in ", "[0-9.]+", " s\n"},
    {"\\(", "[0-9.]+", " s on this machine"},
    {"%", " +[0-9.]+", " %\n"},
    {"ms, ", "[a-z0-9-]+ kernels, [0-9]+ threads?, seed [0-9]+", ""},
};

/* Replaces every such part by a T. */
static void hide(struct buf *b)
{
    for (size_t i = 0; i < sizeof(differs) / sizeof(differs[0]); i++) {
        char pattern[512];
        struct buf out;
        regex_t re;
        regmatch_t m[3];
        const char *p = buf_str(b);
        buf_init(&out, 1 << 24);
        snprintf(pattern, sizeof(pattern), "(%s)%s(%s)", differs[i].before, differs[i].what,
                 differs[i].after);
        assert_int_equal(regcomp(&re, pattern, REG_EXTENDED), 0);
        while (regexec(&re, p, 3, m, 0) == 0) {
            buf_put(&out, p, (size_t)m[1].rm_eo);
            buf_putc(&out, 'T');
            p += m[2].rm_so; /* what is behind one may be in front of the next */
        }
        buf_puts(&out, p);
        regfree(&re);
        buf_fini(b);
        *b = out;
    }
}

static void replace(struct buf *b, const char *from, const char *to)
{
    struct buf out;
    buf_init(&out, 1 << 24);
    for (const char *p = buf_str(b), *at; *p; p = at) {
        at = strstr(p, from);
        buf_put(&out, p, at ? (size_t)(at - p) : strlen(p));
        if (!at)
            break;
        buf_puts(&out, to);
        at += strlen(from);
    }
    buf_fini(b);
    *b = out;
}

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
    replace(&raw, SHOAL_TEST_DATA, "$");
    replace(&raw, dir, "~");
    hide(&raw);
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
    struct block b, next;
    const char *p = text;
    while (next_block(&p, &b)) {
        struct buf out;
        int code;
        if (golden && strncmp(b.head, "out", 3) != 0)
            buf_printf(golden, "== %s\n%.*s", b.head, (int)b.n, b.body);
        if (strncmp(b.head, "file ", 5) == 0)
            write_file(b.head + 5, b.body, b.n);
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
        if (next_block(&look, &next) && strcmp(next.head, "in") == 0) {
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
        const bool has_out = next_block(&p, &next) && strcmp(next.head, "out") == 0;
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

static void enter_folder(void)
{
    snprintf(dir, sizeof(dir), "/tmp/shoal-scripts-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    setenv("SHOAL_COLLECTIONS", dir, 1);
    start_server();
}

static void leave_folder(void)
{
    char command[96];
    stop_server();
    assert_int_equal(chdir(home), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_scripts(void **state)
{
    glob_t found;
    size_t n_wrong = 0;
    const bool write = getenv("SHOAL_GOLDEN") != NULL;
    (void)state;
    assert_non_null(getcwd(home, sizeof(home)));
    assert_int_equal(glob(SCRIPTS, 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct buf text, golden;
        char piece[4096];
        buf_init(&text, 1 << 24);
        buf_init(&golden, 1 << 24);
        FILE *f = fopen(found.gl_pathv[i], "r");
        assert_non_null(f);
        for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
            buf_put(&text, piece, n);
        fclose(f);
        enter_folder();
        n_wrong +=
            run_script(strrchr(found.gl_pathv[i], '/') + 1, buf_str(&text), write ? &golden : NULL);
        leave_folder();
        if (write)
            write_file(found.gl_pathv[i], buf_str(&golden), golden.len);
        buf_fini(&text);
        buf_fini(&golden);
    }
    globfree(&found);
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripts)};
    signal(SIGPIPE, SIG_IGN); /* a client of the server may be gone */
    if (setenv("SHOAL_MODELS", SHOAL_TEST_DATA "/../../models", 1) != 0 ||
        setenv("SHOAL_CACHE_DIR", "", 1) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
