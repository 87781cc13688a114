/* bench_detector.c - CPU time of the detectors per reading: the cascade, and the precise
 * detector on every reading.
 *
 *     build/bench/bench_detector [channels [steps]]
 *
 * Channels are autocorrelated noise (each value keeps half of the one before).  Both must agree on
 * every step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "things/channel.h"

#define LEARN 256u

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double noise(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 40) / (double)(1u << 24);
    }
    return sum - 2;
}

/* Returns nanoseconds per step. */
static double run(struct channel *c, const float *values, size_t n_channels, size_t n, bool always,
                  double *sum, double *checked)
{
    *sum = *checked = 0;
    for (size_t k = 0; k < n_channels; k++) {
        channel_init(&c[k], NULL, LEARN, 100);
        c[k].always = always;
        for (size_t i = 0; i < LEARN; i++)
            (void)channel_step(&c[k], (double)values[(k * 7919 + i) % n], -1);
    }
    double from = seconds();
    for (size_t i = LEARN; i < n; i++)
        for (size_t k = 0; k < n_channels; k++) {
            struct channel_result r = channel_step(&c[k], (double)values[(k * 7919 + i) % n], -1);
            *sum += fmin(r.expected, 1e6);
            *checked += r.checked;
        }
    double steps = (double)(n - LEARN) * (double)n_channels;
    *checked /= steps;
    return (seconds() - from) / steps * 1e9;
}

int main(int argc, char **argv)
{
    size_t n_channels = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
    if (n_channels == 0 || n <= 2 * LEARN) {
        fprintf(stderr, "usage: bench_detector [channels [steps]], at least %u steps\n", 2 * LEARN);
        return 2;
    }
    struct channel *c = mem_zalloc_n(n_channels, sizeof(*c));
    float *values = mem_zalloc_n(n, sizeof(*values));
    uint64_t state = 1;
    double last = 0, sums[2] = {0};
    if (!c || !values)
        return 1;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(20 + (last = 0.5 * last + noise(&state)));
    for (int round = 0; round < 3; round++)
        for (int always = 0; always < 2; always++) {
            double checked,
                ns = run(c, values, n_channels, n, always == 1, &sums[always], &checked);
            printf("%-9s %6.1f ns a reading, %5.1f %% seen by the precise detector\n",
                   always ? "precise" : "cascade", ns, 100 * checked);
        }
    mem_free(c);
    mem_free(values);
    if (sums[0] != sums[1]) {
        fprintf(stderr, "bench_detector: the two ways do not say the same\n");
        return 1;
    }
    return 0;
}
