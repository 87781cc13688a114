/* plant.h - the sensors and machines of the configuration, and the listeners of their alarms.
 *
 * An alarm outlives the process: its number is never reused, and open alarms are kept in a file.
 * After a restart they are restored under their numbers: an alarm whose cause persists is not
 * raised again, and one whose cause is gone clears after its delay.
 *
 * When the call with the reading returns, its alarm is on disk with all listeners and in the file,
 * so acknowledging the reading after that is safe.
 *
 * Thread:    any.  A thread "plant" looks for lost signals twice a second, and runs jobs of threads
 *            that must not wait for a disk (plant_submit).  plant_find, plant_look and plant_submit
 *            never wait for one.  Listeners are called one at a time, in the order of events, by
 *            the thread that caused them or another; they must not call back, and may block for a
 *            file.
 * Good readings go into the history, if there is one (reading_log.h).
 *
 * Ownership: create/destroy (NULL is fine); the configuration is not kept.
 * Failure:   create names the invalid sensor or machine. A file that cannot be written is logged.
 */
#ifndef SHOAL_SITE_THINGS_PLANT_H
#define SHOAL_SITE_THINGS_PLANT_H

#include "base/err.h"
#include "config/config_things.h"
#include "things/things.h"

#define PLANT_MAX_LISTENERS 8u

struct buf;
struct config;
struct json_out;
struct plant;

typedef void (*plant_alarm_fn)(void *ctx, const struct alarm_event *e);

/* Whether there is something to alarm about: sensors, or classifying models, whose confidences may
 * drift, and somebody to tell (a broker, webhooks). */
bool plant_is_needed(const struct config *config);
/* The sensor of a model's confidences (model_watch.h): "confidence/NAME". */
#define PLANT_CONFIDENCE CONFIG_THINGS_CONFIDENCE

/* *out is NULL if it is not needed.  file: that keeps open alarms; NULL: none. */
SHOAL_MUST_CHECK int plant_create(struct plant **out, const struct config *config, const char *file,
                                  struct err *e);
void plant_destroy(struct plant *p);
/* Before start.  Events of this process; restored (may be NULL) gets those alarms of an earlier one
 * that are still open, within plant_start. */
SHOAL_MUST_CHECK int plant_listen(struct plant *p, plant_alarm_fn fn, plant_alarm_fn restored,
                                  void *ctx, struct err *e);
/* Before start: an event of an earlier process, as written by alarm_json. Events are stored before
 * the file of open alarms is written, so after a crash in between the file is older than the
 * events. */
void plant_recall(struct plant *p, const char *json, size_t n);
/* Before start: called by the plant's thread twice a second, without its lock. */
void plant_poll(struct plant *p, void (*fn)(void *ctx, struct plant *p), void *ctx);
SHOAL_MUST_CHECK int plant_start(struct plant *p, struct err *e);
/* Ends the thread. Readings are still evaluated and may raise alarms. NULL is fine. */
void plant_stop(struct plant *p);

uint32_t plant_find(struct plant *p, const char *sensor); /* THINGS_NONE: none */
/* r->sensor from plant_find. */
void plant_reading(struct plant *p, const struct reading *r);
void plant_readings(struct plant *p, const struct reading *list, size_t n);
/* Calls fn with the things' lock held, to look at them. */
void plant_look(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx);
/* The same for changes, such as acknowledging an alarm: returns when listeners have been called. */
void plant_change(struct plant *p, void (*fn)(void *ctx, struct things *t), void *ctx);

/* Work on the plant's thread, in the order in which it was submitted.  After plant_stop it is done
 * within plant_submit. */
struct plant_job {
    struct plant_job *next;
    void (*fn)(struct plant_job *j, struct plant *p); /* j may be gone when it returns */
};
void plant_submit(struct plant *p, struct plant_job *j);
/* Adds a passage to an alarm, by its id; SHOAL_ENOTFOUND: it is no longer open. */
SHOAL_MUST_CHECK int plant_explain(struct plant *p, uint64_t id, const char *passage,
                                   const char *source, struct err *e);
uint32_t plant_open_alarms(struct plant *p);
/* NULL is fine. */
void plant_metrics(struct plant *p, struct buf *b);

#endif
