/* queue.h - the queue of an engine: tasks come in on any thread and leave on the engine's.
 *
 * Thread:    queue_submit from any thread, the others from the engine's.
 * Ownership: the queue holds the engine's reference to a task from queue_submit to queue_done. */
#ifndef SHOAL_ENGINE_QUEUE_H
#define SHOAL_ENGINE_QUEUE_H

#include "engine/engine_state.h"
#include "engine/task.h"

/* SHOAL_EBUSY: the queue is full.  held: the engine is not woken for this task. */
SHOAL_MUST_CHECK int queue_submit(struct shoal_engine *en, struct shoal_task *t, bool held,
                                  struct err *e);
/* Moves new tasks into the waiting lists; sleeps while the engine has nothing to do.  false: stop.
 */
bool queue_receive(struct shoal_engine *en);
/* Puts t, which was running, back into the waiting list of its client. */
void queue_return(struct shoal_engine *en, struct shoal_task *t);
/* Takes *at out of a waiting list. */
void queue_take(struct shoal_engine *en, struct shoal_task **at);
/* Ends t: wakes its waiters and drops the engine's reference. */
void queue_done(struct shoal_engine *en, struct shoal_task *t, int code);

#endif
