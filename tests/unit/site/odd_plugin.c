/* odd_plugin.c - a plug-in that does what its payload says; for test_deed_plugin.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shoal/shoal_plugin.h"

/* Writes "closed" to the file that a payload named. */
static char farewell[200];

static int open_odd(void **state)
{
    *state = farewell;
    return 0;
}

static void close_odd(void *state)
{
    FILE *f = farewell[0] ? fopen(state, "w") : NULL;
    if (f) {
        fputs("closed", f);
        fclose(f);
    }
}

static void fill_memory(void)
{
    for (;;) {
        char *more = malloc(1 << 20);
        if (!more)
            abort(); /* as most programs do */
        memset(more, 1, 1 << 20);
    }
}

static int send_nonsense(void)
{
    for (int i = 0; i < 100; i++)
        if (write(3, "nonsense", 8) < 0)
            return 1;
    return 0;
}

static int misbehave(const char *how)
{
    if (strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "hang") == 0)
        for (;;)
            (void)getppid();
    if (strcmp(how, "leave") == 0)
        _exit(3);
    if (strcmp(how, "fill the memory") == 0)
        fill_memory();
    return strcmp(how, "nonsense") == 0 ? send_nonsense() : 0;
}

static int run_odd(void *state, struct shoal_plugin_call *call)
{
    char pid[16];
    (void)state;
    if (misbehave(call->payload) != 0)
        return 1;
    if (strncmp(call->payload, "farewell ", 9) == 0)
        snprintf(farewell, sizeof(farewell), "%s", call->payload + 9);
    if (strcmp(call->payload, "which process") == 0)
        return call->answer(call, pid, (size_t)snprintf(pid, sizeof(pid), "%d", (int)getpid()));
    if (strcmp(call->payload, "fail with odd bytes") == 0) {
        call->fail(call, "bad\nnews \xff\x01!");
        return 1;
    }
    if (strcmp(call->payload, "until its time is over") == 0)
        while (call->left_ms(call) > 0)
            usleep(1000);
    if (strcmp(call->payload, "fail without a word") == 0)
        return 7;
    if (strcmp(call->payload, "long") == 0)
        for (int i = 0; i < 100; i++)
            if (call->answer(call, "0123456789", 10) < 0)
                return 0;
    return call->answer(call, call->key, strlen(call->key));
}

SHOAL_PLUGIN_EXPORT const struct shoal_plugin *shoal_plugin(void);

const struct shoal_plugin *shoal_plugin(void)
{
    static const struct shoal_plugin table = {.size = sizeof(table),
                                              .version = SHOAL_PLUGIN_VERSION,
                                              .open = open_odd,
                                              .run = run_odd,
                                              .close = close_odd};
    return &table;
}
