/* confidence_watch.c - see confidence_watch.h. */
#include "host/confidence_watch.h"

#include <string.h>

#include "base/log.h"
#include "host/counter.h"

void confidence_watch_init(struct confidence_watch *w,
                           const struct confidence_calibration *reference)
{
    drift_init(&w->drift, reference);
}

void confidence_watch_restore(struct confidence_watch *w, const double shares[CONFIDENCE_BINS])
{
    drift_restore(&w->drift, shares);
}

bool confidence_watch_learned(struct confidence_watch *w, double shares[CONFIDENCE_BINS])
{
    if (!atomic_load_explicit(&w->learned, memory_order_acquire))
        return false;
    memcpy(shares, w->drift.reference, sizeof(w->drift.reference));
    return true;
}

static void look(struct confidence_watch *w, const char *name)
{
    uint64_t counts[CONFIDENCE_BINS];
    for (uint32_t i = 0; i < CONFIDENCE_BINS; i++)
        counts[i] = counter_read(&w->shares.bucket[i]);
    const bool known = w->drift.known;
    enum drift_event event = drift_look(&w->drift, counts);
    if (!known && w->drift.known) /* release: whoever sees it sees the reference */
        atomic_store_explicit(&w->learned, 1, memory_order_release);
    atomic_store_explicit(&w->n_windows, w->drift.n_windows, memory_order_relaxed);
    atomic_store_explicit(&w->index_ppm, (uint64_t)(w->drift.index * 1e6), memory_order_relaxed);
    atomic_store_explicit(&w->alarm, w->drift.alarm, memory_order_relaxed);
    if (event == DRIFT_BEGAN)
        log_warn("drift",
                 "model=%s: its confidences have drifted (index %.2f, normally below %.2f): the "
                 "incoming texts may have changed; check its answers and calibrate it again",
                 name, w->drift.index, DRIFT_OVER);
    else if (event == DRIFT_ENDED)
        log_info("drift", "model=%s: its confidences are back to normal (index %.2f)", name,
                 w->drift.index);
}

void confidence_watch_add(struct confidence_watch *w, const char *name, double confidence)
{
    histogram_add_share(&w->shares, confidence);
    uint64_t n = atomic_fetch_add_explicit(&w->n, 1, memory_order_relaxed) + 1;
    if (n % DRIFT_WINDOW != 0)
        return;
    /* Acquire and release: the next thread that compares sees what this one wrote to drift. */
    if (atomic_exchange_explicit(&w->busy, 1, memory_order_acquire) == 0) {
        look(w, name);
        atomic_store_explicit(&w->busy, 0, memory_order_release);
    }
}
