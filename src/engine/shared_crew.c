/* shared_crew.c - see shared_crew.h. */
#include "engine/shared_crew.h"

#include <assert.h>
#include <pthread.h>

/* The engine API has no object above an engine that could own the crew, and two sets of compute
 * threads in one process would take cores from each other. */
static struct {
    pthread_mutex_t lock;
    struct crew *crew;
    uint32_t n_users;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

int shared_crew_get(struct crew **out, struct err *e)
{
    int rc = 0;
    *out = NULL;
    pthread_mutex_lock(&shared.lock);
    if (!shared.crew)
        rc = crew_create(&shared.crew, e);
    if (rc == 0) {
        shared.n_users++;
        *out = shared.crew;
    }
    pthread_mutex_unlock(&shared.lock);
    return rc;
}

void shared_crew_put(void)
{
    pthread_mutex_lock(&shared.lock);
    assert(shared.n_users > 0);
    if (--shared.n_users == 0) {
        crew_destroy(shared.crew); /* its threads never take this lock */
        shared.crew = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
}
