/* shoal_plugin.h - what a plug-in is: a shared object whose function a flow can call.
 *
 *   flows:
 *     - name: price
 *       output: ${ask.text}
 *       steps:
 *         - {name: ask, do: call, via: plugin, plugin: /opt/plugins/price.so,
 *            payload: "${input.text}"}
 *   flows_allow: {plugins: [/opt/plugins]}
 *
 * The object exports one function, shoal_plugin, which returns a constant table.  Build it with
 *
 *   cc -shared -fPIC -o price.so price.c
 *
 * A plug-in runs in its own process: a crash fails only its call. It has the rights of the
 * server's user, so put only trusted code into the folder, and let nobody else write there.
 *
 * Thread:    the main thread of its process, one call at a time.  Calls that overlap run in several
 *            processes, each with a state of its own.
 * Ownership: the call and its texts are the server's, until run returns.
 * Failure:   run returns 0, or anything else for a failure: `fail` can say why.
 * Versions:  the server refuses a table of another SHOAL_PLUGIN_VERSION. Structs may grow at their
 *            ends; `size` is the size known to the side that created it. */
#ifndef SHOAL_SHOAL_PLUGIN_H
#define SHOAL_SHOAL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "shoal/shoal_errors.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHOAL_PLUGIN_VERSION 1u
#define SHOAL_PLUGIN_SYMBOL "shoal_plugin"

/* One call.  Everything in it stays valid until run returns. */
struct shoal_plugin_call {
    size_t size;
    const char *payload; /* the step's payload; NUL-terminated, the NUL is not counted */
    size_t payload_bytes;
    const char *key; /* the same for all attempts at one call */
    /* Milliseconds until the caller stops waiting; 0: the time is up, return soon. */
    uint32_t (*left_ms)(const struct shoal_plugin_call *call);
    /* Appends to the answer. Returns 0, or a negative number if there is no room for it. */
    int (*answer)(struct shoal_plugin_call *call, const char *text, size_t n);
    /* Sets the reason for a failure: one line for people. */
    void (*fail)(struct shoal_plugin_call *call, const char *why);
};

struct shoal_plugin {
    size_t size;      /* sizeof(struct shoal_plugin) */
    uint32_t version; /* SHOAL_PLUGIN_VERSION */
    /* Called before the first call; state is passed to the others. Not 0: the plug-in cannot be
     * used. May be NULL. */
    int (*open)(void **state);
    /* A run that does not return in time is killed, with its process. */
    int (*run)(void *state, struct shoal_plugin_call *call);
    /* Called when the server stops, or the process is no longer needed. May be NULL. */
    void (*close)(void *state);
};

typedef const struct shoal_plugin *(*shoal_plugin_fn)(void);

/* Put this in front of the definition: it is visible whatever the compiler flags are. */
#define SHOAL_PLUGIN_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
}
#endif

#endif
