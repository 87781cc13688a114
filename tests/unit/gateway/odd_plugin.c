/* odd_plugin.c - a plug-in that does what its payload says; for test_deed_plugin.c. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "shoal/shoal_plugin.h"

#define SEEN __attribute__((visibility("default")))
extern SEEN atomic_bool odd_plugin_held;  /* "hang" returns when this is false */
extern SEEN atomic_uint odd_plugin_opens; /* how often it was opened, less how often closed */
atomic_bool odd_plugin_held = true;
atomic_uint odd_plugin_opens;

static int open_odd(void **state)
{
    *state = NULL;
    atomic_fetch_add(&odd_plugin_opens, 1);
    return 0;
}

static void close_odd(void *state)
{
    (void)state;
    atomic_fetch_sub(&odd_plugin_opens, 1);
}

static int run_odd(void *state, struct shoal_plugin_call *call)
{
    (void)state;
    if (strcmp(call->payload, "hang") == 0)
        while (atomic_load(&odd_plugin_held))
            usleep(1000);
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
