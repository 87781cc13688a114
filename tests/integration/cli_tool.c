/* cli_tool.c - what the tests of the program need beyond a shell:
 *
 *   cli_tool json PATH          reads JSON on stdin, prints what PATH names (tokens[0], a.b,
 *                               a.length); exits 1 when stdin is not JSON or has no such thing
 *   cli_tool jsonl              every line of stdin must be a JSON object; prints how many
 *   cli_tool pty SCRIPT CMD...  runs CMD on a terminal of its own and follows the script:
 *       expect TEXT   wait until TEXT is in the output behind the last match (10 s)
 *       send TEXT     type it, \n for Enter
 *       key LETTER    type Ctrl and this letter
 *       wait MS
 *       exit N        the program ends with this code (10 s) */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS 30000
#define MAX_OUTPUT ((size_t)8 << 20)

static char *read_stdin(void)
{
    size_t n = 0, cap = 1 << 16;
    char *text = malloc(cap + 1);
    for (size_t got; text && (got = fread(text + n, 1, cap - n, stdin)) > 0;) {
        n += got;
        if (n == cap)
            text = realloc(text, (cap *= 2) + 1);
    }
    if (text)
        text[n] = '\0';
    return text;
}

static const cJSON *follow(const cJSON *v, const char *path)
{
    char name[128];
    while (v && *path) {
        size_t n = strcspn(path, ".[");
        if (n > 0) {
            snprintf(name, sizeof(name), "%.*s", (int)n, path);
            v = cJSON_GetObjectItemCaseSensitive(v, name);
            path += n;
        }
        if (*path == '[') {
            v = cJSON_GetArrayItem(v, (int)strtol(path + 1, NULL, 10));
            path += strcspn(path, "]") + 1;
        }
        path += *path == '.';
    }
    return v;
}

static int json(const char *path)
{
    char *text = read_stdin(), base[256];
    cJSON *root = cJSON_ParseWithOpts(text, NULL, true);
    size_t n = strlen(path);
    bool length = n >= 7 && strcmp(path + n - 7, ".length") == 0;
    snprintf(base, sizeof(base), "%.*s", (int)(length ? n - 7 : n), path);
    const cJSON *v = root ? follow(root, base) : NULL;
    if (!v) {
        fprintf(stderr, "%s: %s\n", root ? "no such value" : "not JSON", path);
        return 1;
    }
    if (length)
        printf("%d\n", cJSON_IsString(v) ? (int)strlen(v->valuestring) : cJSON_GetArraySize(v));
    else if (cJSON_IsString(v))
        printf("%s\n", v->valuestring);
    else
        printf("%s\n", cJSON_PrintUnformatted(v));
    return 0;
}

static int jsonl(void)
{
    char *text = read_stdin();
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
        cJSON *v = cJSON_ParseWithOpts(line, NULL, true);
        if (!cJSON_IsObject(v)) {
            fprintf(stderr, "line %d is not a JSON object: %s\n", n + 1, line);
            return 1;
        }
        cJSON_Delete(v);
    }
    printf("%d\n", n);
    return 0;
}

/* ---- terminal ------------------------------------------------------------------------------- */

struct term {
    int fd;
    pid_t pid;
    char *out; /* all output so far */
    size_t n, matched;
    bool closed;
};

static long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads what arrives within ms; false when the terminal is closed. */
static bool pull(struct term *t, int ms)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    if (t->closed)
        return false;
    if (poll(&p, 1, ms) <= 0)
        return true;
    size_t room = MAX_OUTPUT - t->n;
    ssize_t got = room > 0 ? read(t->fd, t->out + t->n, room) : -1;
    if (got <= 0)
        t->closed = true;
    else
        t->n += (size_t)got;
    t->out[t->n] = '\0';
    return !t->closed;
}

static int complain(const struct term *t, const char *what, const char *arg)
{
    fprintf(stderr, "pty: %s %s; shown since the last match:\n", what, arg);
    fwrite(t->out + t->matched, 1, t->n - t->matched < 500 ? t->n - t->matched : 500, stderr);
    fputc('\n', stderr);
    kill(t->pid, SIGKILL);
    return 1;
}

static int expect(struct term *t, const char *text)
{
    long end = now_ms() + TIMEOUT_MS;
    for (;;) {
        char *at = memmem(t->out + t->matched, t->n - t->matched, text, strlen(text));
        if (at) {
            t->matched = (size_t)(at - t->out) + strlen(text);
            return 0;
        }
        if (now_ms() > end || !pull(t, 50))
            return complain(t, "did not see", text);
    }
}

static int await_exit(struct term *t, const char *code)
{
    long end = now_ms() + TIMEOUT_MS;
    int status;
    while (waitpid(t->pid, &status, WNOHANG) == 0) {
        if (now_ms() > end)
            return complain(t, "did not end, expected exit code", code);
        pull(t, 20);
        if (t->closed)
            usleep(20000);
    }
    int got = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (got == (int)strtol(code, NULL, 10))
        return 0;
    fprintf(stderr, "pty: exit code %d\n", got);
    return complain(t, "expected exit code", code);
}

static int type_text(struct term *t, const char *text)
{
    for (; *text; text++) {
        char c = *text;
        if (c == '\\' && text[1] == 'n') {
            c = '\n';
            text++;
        }
        if (write(t->fd, &c, 1) != 1)
            return complain(t, "cannot type", text);
    }
    return 0;
}

static int step(struct term *t, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *arg = strchr(line, ' ');
    if (arg)
        *arg++ = '\0';
    else
        arg = line + strlen(line);
    if (!line[0] || line[0] == '#')
        return 0;
    if (strcmp(line, "expect") == 0)
        return expect(t, arg);
    if (strcmp(line, "send") == 0)
        return type_text(t, arg);
    if (strcmp(line, "key") == 0)
        return type_text(t, (const char[]){(char)(*arg & 31), '\0'});
    if (strcmp(line, "exit") == 0)
        return await_exit(t, arg);
    if (strcmp(line, "wait") == 0) {
        long end = now_ms() + strtol(arg, NULL, 10);
        while (now_ms() < end && pull(t, 10))
            ;
        return 0;
    }
    return complain(t, "unknown step", line);
}

static int pty(const char *script, char **command)
{
    struct term t = {.out = malloc(MAX_OUTPUT + 1)};
    char line[1024];
    FILE *f = fopen(script, "r");
    if (!f || !t.out) {
        fprintf(stderr, "cannot open %s: %s\n", script, strerror(errno));
        return 2;
    }
    t.out[0] = '\0';
    t.pid = forkpty(&t.fd, NULL, NULL, NULL);
    if (t.pid < 0) {
        fprintf(stderr, "forkpty: %s\n", strerror(errno));
        return 2;
    }
    if (t.pid == 0) {
        setenv("TERM", "xterm", 1);
        execvp(command[0], command);
        _exit(127);
    }
    int rc = 0;
    while (rc == 0 && fgets(line, sizeof(line), f))
        rc = step(&t, line);
    fclose(f);
    kill(t.pid, SIGKILL); /* harmless if it has exited */
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "json") == 0)
        return json(argv[2]);
    if (argc == 2 && strcmp(argv[1], "jsonl") == 0)
        return jsonl();
    if (argc > 3 && strcmp(argv[1], "pty") == 0)
        return pty(argv[2], argv + 3);
    fprintf(stderr, "usage: cli_tool json PATH | jsonl | pty SCRIPT COMMAND...\n");
    return 2;
}
