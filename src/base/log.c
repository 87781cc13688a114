/* log.c - see log.h. */
#include "base/log.h"
#include "base/log_recent.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The log sink is the program's only global state; its settings are set once at start. */
static enum log_level max_level = LOG_LEVEL_WARN;
static enum log_format line_format = LOG_FORMAT_LOGFMT;

/* The last lines, for support: bytes of a ring, of which the oldest may begin within a line. */
static struct {
    pthread_mutex_t lock;
    char bytes[LOG_KEPT_BYTES];
    size_t n; /* that were ever put in */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(const char *line, size_t n)
{
    pthread_mutex_lock(&kept.lock);
    const size_t at = kept.n % LOG_KEPT_BYTES;
    const size_t first = n < LOG_KEPT_BYTES - at ? n : LOG_KEPT_BYTES - at;
    memcpy(kept.bytes + at, line, first);
    memcpy(kept.bytes, line + first, n - first);
    kept.n += n;
    pthread_mutex_unlock(&kept.lock);
}

void log_recent(struct buf *out)
{
    pthread_mutex_lock(&kept.lock);
    const size_t n = kept.n < LOG_KEPT_BYTES ? kept.n : LOG_KEPT_BYTES;
    bool whole = n == kept.n; /* otherwise the first line is cut */
    for (size_t i = kept.n - n; i < kept.n; i++) {
        const char c = kept.bytes[i % LOG_KEPT_BYTES];
        if (whole)
            buf_putc(out, c);
        whole |= c == '\n';
    }
    pthread_mutex_unlock(&kept.lock);
}

void log_setup(enum log_level max, enum log_format format)
{
    max_level = max;
    line_format = format;
}

void log_settings(enum log_level *max, enum log_format *format)
{
    *max = max_level;
    *format = line_format;
}

/* Escapes quotes, backslashes and control characters in a way that suits both logfmt and JSON. */
static size_t put_escaped(char *out, size_t cap, const char *s)
{
    size_t n = 0;
    for (; *s && n + 8 < cap; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            out[n++] = '\\';
            out[n++] = (char)c;
        } else if (c < 0x20) {
            n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
        } else {
            out[n++] = (char)c;
        }
    }
    out[n] = '\0';
    return n;
}

void log_event(enum log_level level, const char *mod, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    if (level > max_level)
        return;
    char text[1024], safe[2048], line[2300], stamp[40];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put_escaped(safe, sizeof(safe), text);

    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t at = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + at, sizeof(stamp) - at, ".%03ldZ", now.tv_nsec / 1000000);

    const char *shape = line_format == LOG_FORMAT_JSON
                            ? "{\"ts\":\"%s\",\"lvl\":\"%s\",\"mod\":\"%s\",\"msg\":\"%s\"}\n"
                            : "ts=%s lvl=%s mod=%s msg=\"%s\"\n";
    int n = snprintf(line, sizeof(line), shape, stamp, names[level], mod, safe);
    if (n <= 0)
        return;
    const size_t bytes = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
    keep(line, bytes);
    if (write(STDERR_FILENO, line, bytes) < 0)
        return; /* stderr is gone: nothing else to report to */
}
