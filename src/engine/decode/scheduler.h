/* scheduler.h - the thread of an engine that generates text. */
#ifndef SHOAL_ENGINE_DECODE_SCHEDULER_H
#define SHOAL_ENGINE_DECODE_SCHEDULER_H

/* Thread function; the argument is the struct shoal_engine. */
void *scheduler_main(void *engine);

#endif
