/* ring.c - see ring.h. */
#include "cluster/worker/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 4096u
#define MAX_CAP ((size_t)64 << 20)

/* Positions count bytes since the start and never wrap: at 10 GB/s that takes 58 years.
 *
 * Each side stores its own position or flag and then loads the other's.  Both are seq_cst, so that
 * at least one of two sides that do so at once sees the other: nobody sleeps while there is work.
 */
struct ring_shared {
    _Alignas(64) _Atomic uint64_t written; /* by the writer */
    _Alignas(64) _Atomic uint64_t read;    /* by the reader */
    _Alignas(64) _Atomic uint32_t reader_sleeps;
    _Atomic uint32_t writer_waits;
};
_Static_assert(sizeof(struct ring_shared) <= HEAD_BYTES, "the data follows");

static char *data_of(const struct ring *r)
{
    return (char *)r->shared + HEAD_BYTES;
}

int ring_memory(int *out_fd, size_t cap, struct err *e)
{
    size_t n = 4096;
    *out_fd = -1;
    while (n < cap && n < MAX_CAP)
        n *= 2;
    int fd = memfd_create("shoal-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)(HEAD_BYTES + n)) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return err_set(e, SHOAL_EIO, "cannot create shared memory: %s", strerror(why));
    }
    *out_fd = fd;
    return 0;
}

int ring_open(struct ring *r, int fd, struct err *e)
{
    struct stat st;
    *r = (struct ring){.shared = NULL};
    if (fstat(fd, &st) < 0 || st.st_size <= (off_t)HEAD_BYTES)
        return err_set(e, SHOAL_EIO, "the shared memory is not a ring");
    size_t cap = (size_t)st.st_size - HEAD_BYTES;
    if (cap > MAX_CAP || (cap & (cap - 1)) != 0)
        return err_set(e, SHOAL_EIO, "the shared memory has a wrong size");
    void *p = mmap(NULL, HEAD_BYTES + cap, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_set(e, SHOAL_ENOMEM, "cannot map shared memory: %s", strerror(errno));
    r->shared = p;
    r->cap = cap;
    return 0;
}

void ring_close(struct ring *r)
{
    if (r->shared)
        munmap(r->shared, HEAD_BYTES + r->cap);
    r->shared = NULL;
}

/* Free bytes as the writer sees them. */
static size_t room_of(const struct ring *r)
{
    uint64_t read = atomic_load(&r->shared->read);
    uint64_t used = r->at - read;
    return used < r->cap ? r->cap - (size_t)used : 0;
}

size_t ring_write(struct ring *r, const void *p, size_t n, bool *wake)
{
    struct ring_shared *s = r->shared;
    size_t room = room_of(r);
    *wake = false;
    if (room < n) {
        atomic_store(&s->writer_waits, 1);
        room = room_of(r);
        if (room >= n)
            atomic_store_explicit(&s->writer_waits, 0, memory_order_relaxed);
    }
    n = n < room ? n : room;
    if (n == 0)
        return 0;
    size_t at = (size_t)r->at & (r->cap - 1), first = r->cap - at < n ? r->cap - at : n;
    memcpy(data_of(r) + at, p, first);
    memcpy(data_of(r), (const char *)p + first, n - first);
    r->at += n;
    atomic_store(&s->written, r->at);
    if (atomic_load(&s->reader_sleeps)) {
        atomic_store_explicit(&s->reader_sleeps, 0, memory_order_relaxed);
        *wake = true;
    }
    return n;
}

int ring_read(struct ring *r, void *p, size_t n, size_t *out_n, bool *wake)
{
    struct ring_shared *s = r->shared;
    uint64_t written = atomic_load(&s->written); /* once: the writer may change it at any time */
    uint64_t there = written - r->at;
    *out_n = 0;
    *wake = false;
    if (there > r->cap) /* also if the counter went backwards */
        return SHOAL_EFORMAT;
    n = there < n ? (size_t)there : n;
    if (n == 0)
        return 0;
    size_t at = (size_t)r->at & (r->cap - 1), first = r->cap - at < n ? r->cap - at : n;
    memcpy(p, data_of(r) + at, first);
    memcpy((char *)p + first, data_of(r), n - first);
    r->at += n;
    *out_n = n;
    atomic_store(&s->read, r->at);
    if (atomic_load(&s->writer_waits)) {
        atomic_store_explicit(&s->writer_waits, 0, memory_order_relaxed);
        *wake = true;
    }
    return 0;
}

bool ring_sleep(struct ring *r)
{
    struct ring_shared *s = r->shared;
    atomic_store(&s->reader_sleeps, 1);
    if (atomic_load(&s->written) == r->at)
        return true;
    atomic_store_explicit(&s->reader_sleeps, 0, memory_order_relaxed);
    return false;
}
