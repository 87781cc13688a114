/* fuzz_archive.c - wheels and npm packages: a member has exactly the bytes that were asked for, or
 * there is an error with a message. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "depot/source/archive.h"
#include "depot/source/byte_sink.h"
#include "support/fuzz_note.h"

#define MEMBER "a/b.bin"
#define BYTES 700u
#define SKIP 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(void *ctx, const void *p, size_t n, struct err *e)
{
    size_t *sum = ctx;
    (void)p, (void)e;
    *sum += n;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t got = 0;
    const struct byte_sink to = {&got, count};
    struct err e = {0};
    int fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    int rc = archive_member(fd, MEMBER, BYTES, SKIP, &to, &e);
    if ((rc == 0 && got != BYTES - SKIP) || (rc < 0 && !e.msg[0]) || got > BYTES - SKIP)
        abort();
    FUZZ_NOTE("%d %s %zu", rc, e.msg, got);
    close(fd);
    return 0;
}
