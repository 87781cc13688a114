/* later_site.h - schedules of the home in a server: the schedule of /v1/process, its file, and
 * delivery of results.
 *
 * A result is logged, is shown by /v1/home and /v1/scheduled, and goes to the MQTT topic
 * TOPIC/scheduled/KIND (QoS 1, kept on disk until the broker acknowledges it).
 *
 * Thread:    open, start, stop, close: main's.
 * Ownership: open puts it into the gateway, close takes it out.
 * Failure:   open reports a configured file that cannot be used. Without the default file the
 *            schedule is kept in memory, with a warning. */
#ifndef SHOAL_GATEWAY_THINGS_LATER_SITE_H
#define SHOAL_GATEWAY_THINGS_LATER_SITE_H

#include "gateway/gw.h"

/* No effect without a home, or with a table that has no words for it. */
SHOAL_MUST_CHECK int later_site_open(struct gw *gw, struct err *e);
/* Starts running due entries: the code that carries out actions is ready. */
SHOAL_MUST_CHECK int later_site_start(struct gw *gw, struct err *e);
/* No entry starts from now on. */
void later_site_stop(struct gw *gw);
/* Publishes the results since then. */
void later_site_settle(struct gw *gw);
/* All started entries have ended. */
void later_site_close(struct gw *gw);
/* NULL: nothing happens later here. */
struct home_later *later_site_list(struct gw *gw);

#endif
