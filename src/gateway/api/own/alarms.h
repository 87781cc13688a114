/* alarms.h - sensors and their alarms over HTTP: readings in, values and alarms out.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_OWN_ALARMS_H
#define SHOAL_GATEWAY_API_OWN_ALARMS_H

#include "gateway/call/fields.h"

struct alarm_event;
struct call;
struct json_out;

extern const struct field alarms_acknowledge_fields[], alarms_readings_fields[];
extern const size_t alarms_n_acknowledge_fields, alarms_n_readings_fields;

void alarms_list(struct call *c);        /* GET /v1/alarms, also as a stream of events */
void alarms_acknowledge(struct call *c); /* POST /v1/alarms/acknowledge */
void alarms_readings(struct call *c);    /* POST /v1/readings */

/* False: there are no sensors, and the call is answered. */
bool alarms_has_plant(struct call *c);
/* The alarm as an object. */
void alarms_put(struct json_out *j, const struct alarm_event *e);

#endif
