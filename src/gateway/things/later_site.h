/* later_site.h - what the home does later, in a server: the schedule of /v1/process, its file, and
 * who hears of results.
 *
 * A result is logged, is shown by /v1/home and /v1/scheduled, and goes to the MQTT topic
 * TOPIC/scheduled/KIND (QoS 1, kept on disk until the broker has it).
 *
 * Thread:    open, start, stop, close: main's.
 * Ownership: open puts it into the gateway, close takes it out.
 * Failure:   a configured file that cannot be used: open says why.  Without the usual one the
 *            schedule is kept in memory, and a warning says so. */
#ifndef SHOAL_GATEWAY_THINGS_LATER_SITE_H
#define SHOAL_GATEWAY_THINGS_LATER_SITE_H

#include "gateway/gw.h"

/* Nothing happens without a home, or with a table that has no words for it. */
SHOAL_MUST_CHECK int later_site_open(struct gw *gw, struct err *e);
/* Entries become due: whoever carries actions out is there. */
SHOAL_MUST_CHECK int later_site_start(struct gw *gw, struct err *e);
/* Nothing begins any more. */
void later_site_stop(struct gw *gw);
/* Publishes the results that came since then. */
void later_site_settle(struct gw *gw);
/* What was begun has ended. */
void later_site_close(struct gw *gw);
/* NULL: nothing happens later here. */
struct home_later *later_site_list(struct gw *gw);

#endif
