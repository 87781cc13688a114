/* health.h - grpc.health.v1: whether the server, a service or a model serves, once or at every
 * change.
 *
 * Whoever watches costs nothing until something changes: then each loop is woken once and looks
 * through its watchers.
 *
 * Thread:    the loop's, but for health_changed. */
#ifndef SHOAL_GATEWAY_GRPC_HEALTH_H
#define SHOAL_GATEWAY_GRPC_HEALTH_H

struct call;
struct gw;
struct gw_loop;
struct executor_task;

void health_handle(struct call *c); /* /grpc.health.v1.Health/... */
/* Any thread, under any lock: what is watched may be another thing now. */
void health_changed(struct gw *gw);
/* Of gw_loop.health. */
void health_on_change(struct executor_task *t);
/* Those who watch learn what is another thing now. */
void health_tell(struct gw_loop *gl);
/* The server ends: so do the streams of those who watch. */
void health_end(struct gw_loop *gl);

#endif
