/* watchdog.h - ends a test that hangs.
 *
 * A test waits for an event, never for a time: WAIT_UNTIL ends the program only when the event does
 * not come within a minute.  watchdog_cpu ends it when work that takes milliseconds takes seconds
 * of processor time, because it is not linear in its input.  Both abort, in any thread: cmocka's
 * own failures may come from the test's thread only. */
#ifndef SHOAL_TESTS_WATCHDOG_H
#define SHOAL_TESTS_WATCHDOG_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (int waited_ms = 0; !(condition); waited_ms++) {                                       \
            if (waited_ms >= 60000) {                                                              \
                fprintf(stderr, "%s:%d: after a minute still not: %s\n", __FILE__, __LINE__,       \
                        #condition);                                                               \
                abort();                                                                           \
            }                                                                                      \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static char watchdog_what[200];

static inline void watchdog_bark(int signal)
{
    (void)signal; /* write and abort are async-signal-safe */
    if (write(STDERR_FILENO, watchdog_what, strlen(watchdog_what)) >= 0)
        abort();
    abort();
}

/* From now on the program may use `seconds` of CPU time; 0 lifts the limit. what: printed when it
 * is exceeded, copied. */
static inline void watchdog_cpu(unsigned seconds, const char *what)
{
    const struct itimerval limit = {.it_value.tv_sec = seconds};
    snprintf(watchdog_what, sizeof(watchdog_what), "too slow: %s\n", what);
    signal(SIGVTALRM, watchdog_bark);
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

#endif
