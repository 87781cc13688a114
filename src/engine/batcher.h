/* batcher.h - the thread of an engine that runs a specialist. */
#ifndef SHOAL_ENGINE_BATCHER_H
#define SHOAL_ENGINE_BATCHER_H

struct job;

/* Thread function; the argument is the struct shoal_engine. */
void *batcher_main(void *engine);
/* Called by a specialist in run: the job's result is complete.  The job must not be touched
 * afterwards. */
void batcher_finish(struct job *j);

#endif
