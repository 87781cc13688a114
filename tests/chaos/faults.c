/* faults.c - a library to preload into a member of the chaos test: its disk gets slow or full, and
 * its clock jumps, as the file named by SHOAL_CHAOS_FAULTS says at the moment:
 *
 *   8 bytes   milliseconds that every write, read and sync of a file takes longer
 *   8 bytes   not 0: writes to files fail with ENOSPC
 *   8 bytes   milliseconds that the wall clock is off, signed
 *
 * all in the byte order of the machine.  Sockets and pipes are not affected. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    volatile uint64_t slow_ms, full;
    volatile int64_t clock_ms;
};

static const struct faults *faults(void)
{
    static const struct faults none, *now;
    const char *path = now ? NULL : getenv("SHOAL_CHAOS_FAULTS");
    if (now)
        return now;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = fd >= 0 ? mmap(NULL, sizeof(none), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return now = p == MAP_FAILED ? &none : p;
}

/* True: it is a file, and the disk is full. */
static int disk(int fd, int writes)
{
    const struct faults *f = faults();
    struct stat st;
    if ((f->slow_ms == 0 && f->full == 0) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    const struct timespec t = {(time_t)(f->slow_ms / 1000), (long)(f->slow_ms % 1000) * 1000000};
    if (f->slow_ms)
        nanosleep(&t, NULL);
    if (writes && f->full)
        errno = ENOSPC;
    return writes && f->full;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *p, size_t n)
{
    static ssize_t (*real)(int, const void *, size_t);
    real = real ? real : REAL(write);
    return disk(fd, 1) ? -1 : real(fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    real = real ? real : REAL(pwrite);
    return disk(fd, 1) ? -1 : real(fd, p, n, at);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    real = real ? real : REAL(pread);
    (void)disk(fd, 0);
    return real(fd, p, n, at);
}

int fsync(int fd)
{
    static int (*real)(int);
    real = real ? real : REAL(fsync);
    return disk(fd, 1) ? -1 : real(fd);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    real = real ? real : REAL(fdatasync);
    return disk(fd, 1) ? -1 : real(fd);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    real = real ? real : REAL(clock_gettime);
    int rc = real(id, t);
    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += (time_t)(faults()->clock_ms / 1000);
    return rc;
}

time_t time(time_t *out)
{
    struct timespec t;
    if (clock_gettime(CLOCK_REALTIME, &t) < 0)
        return -1;
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &t) < 0)
        return -1;
    *out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}
