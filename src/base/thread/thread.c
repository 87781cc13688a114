/* thread.c - see thread.h. */
#include "base/thread/thread.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES ((size_t)8 << 20) /* sanitizers make frames several times as large */
#else
#define STACK_BYTES ((size_t)2 << 20)
#endif

/* The signals that threads block. */
static void blocked_signals(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigfillset(set);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(set, own[i]);
}

int thread_create(pthread_t *out, const char *name, thread_fn fn, void *arg, struct err *e)
{
    char shown[THREAD_NAME_BYTES];
    pthread_attr_t attr;
    sigset_t blocked, before;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return err_set(e, SHOAL_ENOMEM, "cannot start thread %s: %s", name, strerror(rc));
    rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* A new thread inherits the mask of its creator: blocked only while it is created. */
    blocked_signals(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (rc == 0)
        rc = pthread_create(out, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (rc != 0)
        return err_set(e, SHOAL_ENOMEM, "cannot start thread %s: %s", name, strerror(rc));
    snprintf(shown, sizeof(shown), "%s", name);
    (void)pthread_setname_np(*out, shown); /* only a name: the thread works without it */
    return 0;
}

int thread_create_numbered(pthread_t *out, const char *role, unsigned i, thread_fn fn, void *arg,
                           struct err *e)
{
    char name[THREAD_NAME_BYTES];
    snprintf(name, sizeof(name), "%s-%u", role, i);
    return thread_create(out, name, fn, arg, e);
}
