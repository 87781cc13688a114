/* cmd_mcp.c - shoal mcp: the tools of a server over stdin and stdout, for programs that start their
 * tools as commands.
 *
 * Each line is a message of the Model Context Protocol, which goes to /mcp of a server: that of
 * --server, or one of our own, a child process on a unix socket.  Calls of tools run beside each
 * other, each on a thread; the answer to a call that was cancelled is dropped. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/mem.h"
#include "base/thread/thread.h"
#include "cmd/cmd.h"
#include "net/http_ask.h"

cmd_fn cmd_mcp;

#define MAX_LINE_BYTES ((size_t)8 << 20)
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define MAX_CALLS 16u
#define MAX_ARGS (8u + 2u * OPTS_MAX_LIST)
#define READY_MS 300000u /* models are loaded meanwhile */
#define CALL_MS 600000u

static const struct opts_def defs[] = {
    {"server", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "use a running server, http://HOST:PORT or unix:PATH; default: $SHOAL_SERVER, or a private "
     "one"},
    {"key", 0, OPTS_TEXT, "KEY", NULL, 0, 0, "API key of that server; default: $SHOAL_API_KEY"},
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "configuration of the private server"},
    {"model", 'm', OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "model of the private server; may be repeated; default: the models included with Shoal"},
};

static const struct opts_page page = {
    .command = "mcp",
    .arguments = "",
    .summary = "Serves classify, tag, search and ask as tools of the Model Context Protocol, over "
               "stdin and stdout.",
    .details = "Over HTTP the same tools are at /mcp of `shoal serve`.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal mcp\n"
                "  shoal mcp --server http://127.0.0.1:8080\n"
                "  claude mcp add shoal -- shoal mcp\n",
};

struct bridge {
    const struct opts *o;
    const char *server, *key;
    pthread_mutex_t lock; /* guards stdout and jobs */
    struct mcp_job *jobs[MAX_CALLS];
};

struct mcp_job { /* a call that runs */
    struct bridge *bridge;
    char *line;
    size_t n;
    cJSON *id;
    pthread_t thread;
    bool cancelled, over;
};

/* ---- messages ---- */

static void put_line(const char *p, size_t n)
{
    while (n > 0 && (p[n - 1] == '\n' || p[n - 1] == '\r'))
        n--;
    if (n == 0)
        return;
    fwrite(p, 1, n, stdout);
    putchar('\n');
    fflush(stdout);
}

/* A failure of the bridge itself, as the answer to a request. */
static void put_failure(const cJSON *id, const char *text)
{
    cJSON *m = cJSON_CreateObject();
    cJSON_AddStringToObject(m, "jsonrpc", "2.0");
    cJSON_AddItemToObject(m, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
    cJSON *e = cJSON_AddObjectToObject(m, "error");
    cJSON_AddNumberToObject(e, "code", -32603);
    cJSON_AddStringToObject(e, "message", text);
    char *line = cJSON_PrintUnformatted(m);
    if (line)
        put_line(line, strlen(line));
    cJSON_free(line);
    cJSON_Delete(m);
}

/* One message to the server; its answer to stdout.  j: the call that it is, or NULL. */
static void pass(struct bridge *b, const char *line, size_t n, const cJSON *id,
                 const struct mcp_job *j)
{
    const struct http_ask a = {.server = b->server,
                               .method = "POST",
                               .path = "/mcp",
                               .key = b->key,
                               .content_type = "application/json",
                               .content = line,
                               .content_bytes = n,
                               .timeout_ms = CALL_MS};
    struct err e = {0};
    struct buf answer;
    int status = 0;
    char text[sizeof(e.msg) + 64];
    buf_init(&answer, MAX_ANSWER_BYTES);
    int rc = http_ask(&a, &status, &answer, &e);
    pthread_mutex_lock(&b->lock);
    if (j && j->cancelled) {
        /* the client no longer wants the answer */
    } else if (rc == 0 && status == 200) {
        put_line(buf_str(&answer), answer.len);
    } else if (rc < 0 || status >= 400) {
        if (rc < 0)
            snprintf(text, sizeof(text), "%s", e.msg);
        else
            snprintf(text, sizeof(text), "the server answers %d: %.200s", status, buf_str(&answer));
        if (id)
            put_failure(id, text);
        else
            fprintf(stderr, "shoal mcp: %s\n", text);
    }
    pthread_mutex_unlock(&b->lock);
    buf_fini(&answer);
}

static void *run_job(void *arg)
{
    struct mcp_job *j = arg;
    pass(j->bridge, j->line, j->n, j->id, j);
    pthread_mutex_lock(&j->bridge->lock);
    j->over = true;
    pthread_mutex_unlock(&j->bridge->lock);
    return NULL;
}

static void job_free(struct mcp_job *j)
{
    pthread_join(j->thread, NULL);
    cJSON_Delete(j->id);
    mem_free(j->line);
    mem_free(j);
}

/* A slot for one more call, after freeing finished ones; MAX_CALLS: none. */
static size_t free_place(struct bridge *b)
{
    size_t at = MAX_CALLS;
    for (size_t i = 0; i < MAX_CALLS; i++) {
        pthread_mutex_lock(&b->lock);
        bool over = b->jobs[i] && b->jobs[i]->over;
        pthread_mutex_unlock(&b->lock);
        if (over) {
            job_free(b->jobs[i]);
            b->jobs[i] = NULL;
        }
        if (!b->jobs[i])
            at = i;
    }
    return at;
}

/* True: it runs in parallel. */
static bool start_job(struct bridge *b, const char *line, size_t n, const cJSON *id)
{
    size_t at = free_place(b);
    struct err e;
    struct mcp_job *j = at < MAX_CALLS ? mem_zalloc(sizeof(*j)) : NULL;
    if (!j)
        return false;
    j->bridge = b;
    j->n = n;
    j->line = mem_strndup(line, n);
    j->id = cJSON_Duplicate(id, true);
    if (!j->line || !j->id || thread_create(&j->thread, "mcp-call", run_job, j, &e) < 0) {
        mem_free(j->line);
        cJSON_Delete(j->id);
        mem_free(j);
        return false;
    }
    b->jobs[at] = j;
    return true;
}

static void cancel(struct bridge *b, const cJSON *message)
{
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(message, "params");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(params, "requestId");
    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; id && i < MAX_CALLS; i++)
        if (b->jobs[i] && cJSON_Compare(b->jobs[i]->id, id, true))
            b->jobs[i]->cancelled = true;
    pthread_mutex_unlock(&b->lock);
}

static void take_line(struct bridge *b, const char *line, size_t n)
{
    cJSON *m = cJSON_ParseWithLength(line, n);
    const char *method = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "method"));
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(m, "id");
    if (!cJSON_IsObject(m)) {
        pthread_mutex_lock(&b->lock);
        put_failure(NULL, "the line is not a JSON object");
        pthread_mutex_unlock(&b->lock);
    } else if (!id) {
        if (method && strcmp(method, "notifications/cancelled") == 0)
            cancel(b, m);
        pass(b, line, n, NULL, NULL);
    } else if (!method || strcmp(method, "tools/call") != 0 || !start_job(b, line, n, id)) {
        pass(b, line, n, id, NULL);
    }
    cJSON_Delete(m);
}

static int read_lines(struct bridge *b)
{
    struct buf in;
    char *room;
    ssize_t got = 0;
    buf_init(&in, MAX_LINE_BYTES);
    while ((room = buf_room(&in, 65536)) && (got = read(STDIN_FILENO, room, 65536)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        buf_used(&in, (size_t)got);
        char *at = in.data, *nl;
        while ((nl = memchr(at, '\n', (size_t)(in.data + in.len - at)))) {
            if (nl > at)
                take_line(b, at, (size_t)(nl - at));
            at = nl + 1;
        }
        size_t left = (size_t)(in.data + in.len - at);
        memmove(in.data, at, left);
        in.len = left;
    }
    for (size_t i = 0; i < MAX_CALLS; i++)
        if (b->jobs[i])
            job_free(b->jobs[i]);
    int rc = room && got == 0 ? CMD_OK
                              : cmd_fail(b->o->page, "cannot read stdin: %s",
                                         room ? strerror(errno) : "a line is longer than 8 MiB");
    buf_fini(&in);
    return rc;
}

/* ---- a server of its own ---- */

struct own {
    pid_t pid;
    char folder[64], socket[96], address[112];
};

/* In the child. */
static void become_server(const struct own *s, const struct opts *o)
{
    const char *argv[MAX_ARGS + 1];
    const char *const *models = NULL;
    size_t n = 0, n_models = opts_list(o, "model", &models);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the child ends with this process */
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    argv[n++] = "shoal";
    argv[n++] = "serve";
    argv[n++] = "--listen";
    argv[n++] = s->address;
    if (opts_given(o, "config")) {
        argv[n++] = "--config";
        argv[n++] = opts_text(o, "config");
    }
    for (size_t i = 0; i < n_models && n + 2 <= MAX_ARGS; i++) {
        argv[n++] = "-m";
        argv[n++] = models[i];
    }
    argv[n] = NULL;
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int wait_ready(const struct own *s, struct err *e)
{
    for (uint32_t ms = 0; ms < READY_MS; ms += 20) {
        const struct http_ask a = {
            .server = s->address, .method = "GET", .path = "/readyz", .timeout_ms = 5000};
        struct buf answer;
        struct err why;
        int status = 0;
        buf_init(&answer, 65536);
        int rc = http_ask(&a, &status, &answer, &why);
        buf_fini(&answer);
        if (rc == 0 && status == 200)
            return 0;
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
            return err_set(e, SHOAL_EIO, "the private server ended: see above");
        usleep(20000);
    }
    return err_set(e, SHOAL_EDEADLINE, "the private server is not ready after %u s",
                   READY_MS / 1000);
}

static int own_open(struct own *s, const struct opts *o, struct err *e)
{
    snprintf(s->folder, sizeof(s->folder), P_tmpdir "/shoal-mcp-XXXXXX");
    if (!mkdtemp(s->folder)) {
        int rc =
            err_set(e, SHOAL_EIO, "cannot create a folder in " P_tmpdir ": %s", strerror(errno));
        s->folder[0] = '\0';
        return rc;
    }
    snprintf(s->socket, sizeof(s->socket), "%s/http.sock", s->folder);
    snprintf(s->address, sizeof(s->address), "unix:%s", s->socket);
    s->pid = fork();
    if (s->pid < 0)
        return err_set(e, SHOAL_EIO, "cannot start the private server: %s", strerror(errno));
    if (s->pid == 0)
        become_server(s, o);
    return wait_ready(s, e);
}

static void own_close(struct own *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
    }
    if (s->folder[0]) {
        unlink(s->socket);
        rmdir(s->folder);
    }
}

int cmd_mcp(int argc, const char *const *argv)
{
    struct opts o;
    struct own own = {0};
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    const char *env = getenv("SHOAL_SERVER"), *key = opts_text(&o, "key");
    struct bridge b = {.o = &o,
                       .server = opts_given(&o, "server") ? opts_text(&o, "server") : env,
                       .key = key ? key : getenv("SHOAL_API_KEY"),
                       .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!b.server || !b.server[0]) {
        if (own_open(&own, &o, &e) < 0)
            rc = cmd_fail(&page, "%s", e.msg);
        else
            rc = CMD_OK;
        b.server = own.address;
        b.key = NULL;
    } else {
        rc = CMD_OK;
    }
    if (rc == CMD_OK)
        rc = read_lines(&b);
    own_close(&own);
    opts_fini(&o);
    return rc;
}
