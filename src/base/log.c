/* log.c - see log.h. */
#include "base/log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The log sink is the program's only global state; it is set once at start. */
static enum log_level max_level = LOG_LEVEL_WARN;
static enum log_format line_format = LOG_FORMAT_LOGFMT;

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
    if (n > 0 &&
        write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line)) < 0)
        return; /* stderr is gone: nothing else to report to */
}
