/* home_sink.h - carries actions out: the interface between the home flow, which decides what should
 * happen, and a transport (MQTT, HTTP, a command) that makes it happen.
 *
 * The home flow calls `carry` once for every thing that an action sets, from one place behind all
 * checks (gate.h), and waits for `done` before it says what happened.  Without a sink the home is
 * simulated: states change in memory only, and the result of an action is "simulated".
 *
 * A transport that hears from things reports it through home_things.h, so that questions about
 * states are answered by what is true.
 *
 * Thread:    carry: any thread, also several at a time.  It must not block.  It calls `done`
 *            exactly once, on any thread, also before it returns.
 * Ownership: the sink belongs to whoever made it, and outlives the flow.  A deed is borrowed
 *            until carry returns; the reason until `done` returns.
 * Failure:   HOME_SINK_FAILED or HOME_SINK_NOT_CONNECTED with a reason. */
#ifndef SHOAL_APPS_HOME_HOME_SINK_H
#define SHOAL_APPS_HOME_HOME_SINK_H

#include <stdbool.h>
#include <stdint.h>

enum home_sink_result {
    HOME_SINK_DONE,          /* the thing confirmed it */
    HOME_SINK_SENT,          /* sent; the thing does not confirm */
    HOME_SINK_FAILED,        /* the thing, or its transport, refused */
    HOME_SINK_NOT_CONNECTED, /* the thing cannot be reached now */
};

struct home_deed {       /* sets one value of one thing */
    const char *id;      /* of the thing, as in the home file: "light.kitchen" */
    const char *ability; /* what is set: "power", "brightness", "lock" */
    const char *text;    /* the value: "on", "locked", "red"; NULL: it is a number */
    double number;
    const char *unit;     /* of the number: "percent", "celsius"; NULL: none */
    bool change;          /* by how much it changes: the present value is not known */
    const char *action;   /* the action behind it: "turn_on" */
    uint64_t deadline_ns; /* deadline on clock_ns(); 0: none, the sink has its own timeouts */
};

/* reason: a short clause for a person, such as "the bulb does not answer"; NULL: none. */
typedef void (*home_sink_done_fn)(void *ctx, enum home_sink_result result, const char *reason);

struct home_sink;
struct home_sink_ops {
    void (*carry)(struct home_sink *s, const struct home_deed *deed, home_sink_done_fn done,
                  void *ctx);
};

struct home_sink { /* the first member of a sink's own struct */
    const struct home_sink_ops *ops;
};

#endif
