/* sensors.h - the sensors over HTTP: a list, or one stream of events with everything the page
 * shows.
 *
 * The stream begins with the event "sensors" (description and last values of each) and the newest
 * alarms; "readings" (sensors that changed, with their current state) and "alarm" follow. A client
 * that reads slowly gets fewer events, never older ones.
 *
 * Thread: the loop's. */
#ifndef SHOAL_GATEWAY_API_OWN_SENSORS_H
#define SHOAL_GATEWAY_API_OWN_SENSORS_H

struct call;

void sensors_list(struct call *c); /* GET /v1/sensors */

#endif
