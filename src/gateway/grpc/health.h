/* health.h - grpc.health.v1: reports whether the server, a service or a model is serving, once or
 * at every change.
 *
 * A watcher costs nothing until something changes; then each loop is woken once and checks its
 * watchers.
 *
 * Thread:    the loop's, but for health_changed. */
#ifndef SHOAL_GATEWAY_GRPC_HEALTH_H
#define SHOAL_GATEWAY_GRPC_HEALTH_H

struct call;
struct gw;
struct gw_loop;
struct executor_task;

void health_handle(struct call *c); /* /grpc.health.v1.Health/... */
/* From any thread, under any lock: some state may have changed. */
void health_changed(struct gw *gw);
/* Of gw_loop.health. */
void health_on_change(struct executor_task *t);
/* Notifies the loop's watchers of changes. */
void health_tell(struct gw_loop *gl);
/* Ends the streams of all watchers: the server stops. */
void health_end(struct gw_loop *gl);

#endif
