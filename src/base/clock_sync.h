/* clock_sync.h - whether the kernel knows that something (NTP) keeps the time of day right. */
#ifndef SHOAL_BASE_CLOCK_SYNC_H
#define SHOAL_BASE_CLOCK_SYNC_H

#include <stdbool.h>
#include <sys/timex.h>

static inline bool clock_is_synchronized(void)
{
    struct timex t = {0}; /* modes 0: only read */
    const int state = adjtimex(&t);
    return state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
}

#endif
