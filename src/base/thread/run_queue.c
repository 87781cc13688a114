/* run_queue.c - see run_queue.h. */
#include "base/thread/run_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 512u /* more compute threads than a process has; others are not counted */

/* One set for the process, as the crew is: the threads of all engines share its cores. */
static struct {
    pthread_mutex_t lock;
    struct {
        bool used;
        int fd;
    } threads[MAX_THREADS];
    uint32_t n;                 /* places that were ever used */
    struct run_queue_time gone; /* of threads that have left */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct run_queue_time read_one(int fd)
{
    char text[96], *end;
    const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    struct run_queue_time t = {0, 0};
    if (n <= 0)
        return t;
    text[n] = '\0';
    t.ran_ns = strtoull(text, &end, 10);
    t.waited_ns = strtoull(end, NULL, 10);
    return t;
}

static void add(struct run_queue_time *sum, struct run_queue_time t)
{
    sum->ran_ns += t.ran_ns;
    sum->waited_ns += t.waited_ns;
}

int run_queue_join(void)
{
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    uint32_t i = 0;
    if (fd < 0)
        return -1;
    pthread_mutex_lock(&all.lock);
    while (i < MAX_THREADS && all.threads[i].used)
        i++;
    if (i < MAX_THREADS) {
        all.threads[i].used = true;
        all.threads[i].fd = fd;
        all.n = all.n > i ? all.n : i + 1;
    }
    pthread_mutex_unlock(&all.lock);
    if (i < MAX_THREADS)
        return (int)i;
    close(fd);
    return -1;
}

void run_queue_leave(int place)
{
    if (place < 0)
        return;
    pthread_mutex_lock(&all.lock);
    add(&all.gone, read_one(all.threads[place].fd));
    close(all.threads[place].fd);
    all.threads[place].used = false;
    pthread_mutex_unlock(&all.lock);
}

struct run_queue_time run_queue_read(void)
{
    pthread_mutex_lock(&all.lock);
    struct run_queue_time sum = all.gone;
    for (uint32_t i = 0; i < all.n; i++)
        if (all.threads[i].used)
            add(&sum, read_one(all.threads[i].fd));
    pthread_mutex_unlock(&all.lock);
    return sum;
}
