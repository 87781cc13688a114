/* control_json.h - the desired state and events as JSON, the same for the command line and the
 * network.
 *
 * Thread: any; reads only. */
#ifndef SHOAL_CLUSTER_CONTROL_CONTROL_JSON_H
#define SHOAL_CLUSTER_CONTROL_CONTROL_JSON_H

#include <stdint.h>

struct desired;
struct desired_rollout;
struct event_log_entry;
struct json_out;

/* One object. */
void control_json_desired(struct json_out *j, const struct desired *d);
/* One object. */
void control_json_rollout(struct json_out *j, const struct desired_rollout *r);
/* One object. */
void control_json_event(struct json_out *j, const struct event_log_entry *entry);
/* "2026-11-15T21:12:00.613Z" */
void control_json_time(char out[32], uint64_t unix_ms);

#endif
