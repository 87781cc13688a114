/* sensors.h - the sensors over HTTP: a list, or one stream of events with all that a page shows.
 *
 * The stream begins with the event "sensors" (what each is, its last values) and the newest alarms;
 * then come "readings" (the sensors that changed, as they are now) and "alarm".  A client that
 * reads slowly gets fewer events, never older ones.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_OWN_SENSORS_H
#define SHOAL_GATEWAY_API_OWN_SENSORS_H

struct call;

void sensors_list(struct call *c); /* GET /v1/sensors */

#endif
