/* plant.h - the sensors and machines of the configuration, and who hears of their alarms.
 *
 * An alarm outlives the process: its number is never used again, and which alarms are open is kept
 * in a file.  After a restart, an alarm of a sensor that had one open continues the old one: it is
 * not raised a second time.  If it is not raised again within PLANT_RECALL_MS although readings
 * come, it is over, and that is told.
 *
 * Thread:    any; one lock inside.  A thread "plant" looks for lost signals twice a second.
 * Listeners are called with the lock held: they must not call back, and may block for a file.
 * Ownership: create/destroy (NULL is fine); the configuration is not kept.
 * Failure:   create says which sensor or machine is wrong.  A file that cannot be written is
 * logged. */
#ifndef SHOAL_GATEWAY_THINGS_PLANT_H
#define SHOAL_GATEWAY_THINGS_PLANT_H

#include "base/err.h"
#include "things/things.h"

#define PLANT_MAX_LISTENERS 8u
#define PLANT_RECALL_MS 30000

struct gw_config;
struct json_out;
struct plant;

typedef void (*plant_alarm_fn)(void *ctx, const struct alarm_event *e);

/* *out is NULL if there are no sensors.  file: that keeps open alarms; NULL: none. */
SHOAL_MUST_CHECK int plant_create(struct plant **out, const struct gw_config *config,
                                  const char *file, struct err *e);
void plant_destroy(struct plant *p);
/* Before start. */
SHOAL_MUST_CHECK int plant_listen(struct plant *p, plant_alarm_fn fn, void *ctx, struct err *e);
/* Before start: an event of an earlier process, as alarm_json wrote it.  Events are kept before the
 * file of open alarms is written, so a crash in between leaves the file behind them. */
void plant_recall(struct plant *p, const char *json, size_t n);
SHOAL_MUST_CHECK int plant_start(struct plant *p, struct err *e);
/* Ends the thread.  Readings still count, and may raise alarms.  NULL is fine. */
void plant_stop(struct plant *p);

uint32_t plant_find(struct plant *p, const char *sensor); /* THINGS_NONE: there is none */
/* r->sensor from plant_find. */
void plant_reading(struct plant *p, const struct reading *r);
/* Calls fn with the lock held, to look at the things. */
void plant_look(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx);
/* A passage for an alarm, by the id that was told; SHOAL_ENOTFOUND: it is not open any more. */
SHOAL_MUST_CHECK int plant_explain(struct plant *p, uint64_t id, const char *passage,
                                   const char *source, struct err *e);
uint32_t plant_open_alarms(struct plant *p);

#endif
