/* resolve.c - see resolve.h. */
#include "net/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/thread/thread.h"
#include "net/listen.h"
#include "net/loop.h"

struct resolve {
    struct loop *loop;
    resolve_fn fn;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    bool cancelled; /* under lock until `done` is posted */
    struct executor_task done;
    int why; /* result of getaddrinfo */
    struct resolve_answer answer;
    char host[256], port[32];
};

static int look_up(struct resolve_answer *out, const char *host, const char *port, int flags)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = flags | AI_NUMERICSERV},
                    *list = NULL;
    int why = getaddrinfo(host, port, &hints, &list);
    out->n = 0;
    for (const struct addrinfo *a = list; a && out->n < RESOLVE_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(out->at[0].addr))
            continue;
        memcpy(&out->at[out->n].addr, a->ai_addr, a->ai_addrlen);
        out->at[out->n++].n_addr = a->ai_addrlen;
    }
    if (list)
        freeaddrinfo(list);
    return why == 0 && out->n == 0 ? EAI_NONAME : why;
}

static void resolve_free(struct resolve *r)
{
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

static void on_done(struct executor_task *t)
{
    struct resolve *r = LOOP_OF(t, struct resolve, done);
    pthread_join(r->thread, NULL); /* it posted this task as its last action */
    if (!r->cancelled) {
        char message[400] = "";
        if (r->why != 0)
            snprintf(message, sizeof(message), "cannot find %s: %s", r->host, gai_strerror(r->why));
        r->fn(r->ctx, r->why ? SHOAL_EIO : 0, &r->answer, message);
    }
    resolve_free(r);
}

static void *work(void *arg)
{
    struct resolve *r = arg;
    r->why = look_up(&r->answer, r->host, r->port, 0);
    pthread_mutex_lock(&r->lock);
    bool alone = r->cancelled; /* the loop may be gone */
    if (!alone)
        loop_post(r->loop, &r->done);
    pthread_mutex_unlock(&r->lock);
    if (alone) {
        pthread_detach(pthread_self());
        resolve_free(r);
    }
    return NULL;
}

int resolve_start(struct resolve **out, struct resolve_answer *answer, struct loop *l,
                  const char *address, resolve_fn fn, void *ctx, struct err *e)
{
    char host[256];
    const char *port = "";
    *out = NULL;
    *answer = (struct resolve_answer){0};
    if (listen_is_unix(address)) {
        struct sockaddr_un *addr = (struct sockaddr_un *)(void *)&answer->at[0].addr;
        answer->n = 1;
        answer->at[0].n_addr = sizeof(*addr);
        return listen_unix(addr, address, e);
    }
    int rc = listen_split(address, host, sizeof(host), &port, e);
    if (rc < 0)
        return rc;
    int why = look_up(answer, host, port, AI_NUMERICHOST);
    if (why == 0)
        return 0;
    if (why != EAI_NONAME || host[0] == '\0' || strlen(port) >= 32)
        return err_set(e, SHOAL_EINVAL, "%s is not an address: %s", address, gai_strerror(why));
    struct resolve *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory to look up %s", host);
    *r = (struct resolve){.loop = l, .fn = fn, .ctx = ctx, .done = {.fn = on_done}};
    memcpy(r->host, host, sizeof(host));
    memcpy(r->port, port, strlen(port) + 1);
    pthread_mutex_init(&r->lock, NULL);
    rc = thread_create(&r->thread, "resolve", work, r, e);
    if (rc < 0) {
        resolve_free(r);
        return rc;
    }
    *out = r;
    return 0;
}

void resolve_cancel(struct resolve *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->cancelled = true;
    pthread_mutex_unlock(&r->lock);
    /* the thread frees it, or on_done if that is posted already */
}
