/* cluster_findings.c - see cluster_findings.h. */
#include "cmd/cluster/cluster_findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes_text.h"
#include "base/err.h"
#include "base/plural.h"
#include "cmd/server_ask.h"

#define DAY_S 86400
#define CERT_DAYS 14    /* before this many days are left, a certificate is replaced */
#define CLOCK_MS 2000.0 /* more than a link and a busy machine explain */
#define CLOCK_BAD_MS 60000.0
#define RTT_US 50000.0 /* a token that goes over such a link is seen to be late */
#define SLOWNESS 50.0  /* its own figures are not believed any more */
#define DISK_PART 0.05
#define DISK_BYTES (1024.0 * 1024 * 1024)
#define MEMORY_PART 0.05
#define BATTERY_PERCENT 20.0

struct findings {
    struct cluster_finding *v;
    size_t n;
    const char *where;
};

static struct cluster_finding *next(struct findings *f, bool error, const char *fmt, va_list ap)
{
    if (f->n == CLUSTER_FINDINGS_MAX)
        f->n--; /* the last one says what the others do not */
    struct cluster_finding *to = &f->v[f->n++];
    *to = (struct cluster_finding){.error = error};
    snprintf(to->where, sizeof(to->where), "%s", f->where);
    vsnprintf(to->what, sizeof(to->what), fmt, ap);
    return to;
}

SHOAL_PRINTF(3, 4)
static void bad(struct findings *f, const char *fix, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    snprintf(next(f, true, fmt, ap)->fix, sizeof(f->v->fix), "%s", fix);
    va_end(ap);
}

SHOAL_PRINTF(3, 4)
static void poor(struct findings *f, const char *fix, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    snprintf(next(f, false, fmt, ap)->fix, sizeof(f->v->fix), "%s", fix);
    va_end(ap);
}

static const cJSON *item(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static bool is(const cJSON *o, const char *name, const char *value)
{
    return strcmp(server_ask_text(o, name), value) == 0;
}

/* ---- a member ---- */

static void look_at_certificate(struct findings *f, double until, int64_t now_s)
{
    const double days = floor((until - (double)now_s) / DAY_S);
    char fix[200];
    snprintf(fix, sizeof(fix),
             "where the authority is: shoal ca issue %.64s; then copy its folder to the member, "
             "which reads it while it runs",
             f->where);
    if (until > 0 && until <= (double)now_s)
        bad(f, fix, "its certificate has expired: other members refuse it");
    else if (until > 0 && days < CERT_DAYS)
        poor(f, fix, "its certificate expires in %.0f day%s", days, plural((uint64_t)days));
}

static void look_at_disk(struct findings *f, const cJSON *h)
{
    const double all = server_ask_number(h, "disk_bytes"), left = server_ask_number(h, "disk_free");
    char a[32], b[32];
    if (all > 0 && left < DISK_BYTES && left < DISK_PART * all)
        poor(f, "free some space there: shoal store gc; or name other folders in its configuration",
             "its disk is almost full: %s of %s are free", bytes_text(a, left), bytes_text(b, all));
}

static void look_at_heat(struct findings *f, const cJSON *h)
{
    const double now = server_ask_number(h, "celsius"), hot = server_ask_number(h, "celsius_limit");
    static const char fix[] = "cool it: a heat sink, a fan, free air; or give it fewer threads";
    if (now > 0 && hot > 0 && now >= hot)
        poor(f, fix, "it is at %.0f C and slows down from %.0f C on", now, hot);
    else if (cJSON_IsTrue(item(h, "throttled")))
        poor(f, fix, "it has slowed itself down within the last minute: it is too hot");
}

static void look_at_health(struct findings *f, const cJSON *h, int64_t now_s)
{
    if (is(h, "clock", "free"))
        poor(f, "there: timedatectl set-ntp true; or install chrony",
             "nothing keeps its clock right: certificates, schedules and traces need it");
    look_at_certificate(f, server_ask_number(h, "certificate_until"), now_s);
    look_at_disk(f, h);
    look_at_heat(f, h);
}

static void look_at_clock(struct findings *f, const cJSON *n)
{
    const double ms = server_ask_number(n, "clock_ms");
    static const char fix[] = "there, and here: timedatectl set-ntp true; or install chrony";
    if (fabs(ms) >= CLOCK_BAD_MS)
        bad(f, fix, "its clock is %.0f s %s ours", fabs(ms) / 1e3, ms > 0 ? "ahead of" : "behind");
    else if (fabs(ms) >= CLOCK_MS)
        poor(f, fix, "its clock is %.1f s %s ours", fabs(ms) / 1e3, ms > 0 ? "ahead of" : "behind");
}

static void look_at_link(struct findings *f, const cJSON *n)
{
    const double rtt = server_ask_number(n, "rtt_us"), slow = server_ask_number(n, "slowness");
    if (is(n, "breaker", "open"))
        bad(f, "read its log; it gets requests again when one succeeds",
            "requests fail there, so it gets none for now");
    if (rtt > RTT_US)
        poor(f, "use a faster link, or let it serve what nobody waits for",
             "the way to it and back takes %.0f ms", rtt / 1e3);
    if (slow > SLOWNESS)
        poor(f, "see what else runs there",
             "it is %.0f times slower than it reports: its figures are not used", slow);
}

static void look_at_memory(struct findings *f, const cJSON *n)
{
    const double all = server_ask_number(n, "memory_bytes");
    const double left = server_ask_number(n, "memory_free");
    char a[32], b[32];
    if (all > 0 && left < MEMORY_PART * all)
        poor(f, "unload models there, or limit them: memory in its configuration",
             "its memory is almost full: %s of %s are free", bytes_text(a, left),
             bytes_text(b, all));
    if (cJSON_IsTrue(item(n, "on_battery")) &&
        server_ask_number(n, "battery_percent") < BATTERY_PERCENT)
        poor(f, "connect it to the mains", "it runs on a battery that has %.0f %% left",
             server_ask_number(n, "battery_percent"));
}

static void look_at_models(struct findings *f, const cJSON *n)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, item(n, "models"))
    {
        const char *name = server_ask_text(m, "name");
        if (is(m, "state", "failed"))
            bad(f, "mend what it says, then: shoal model load NAME --server THERE",
                "model %.64s cannot be loaded: %.160s", name, server_ask_text(m, "error"));
    }
    cJSON_ArrayForEach(m, item(n, "wanted"))
    {
        const char *name = cJSON_GetStringValue(m);
        bad(f, "shoal cluster plan says what is planned; or start a node with memory for it",
            "requests wait for model %.64s, which no node has ready", name ? name : "");
    }
}

static void look_at_version(struct findings *f, const cJSON *n, const char *ours)
{
    const char *theirs = server_ask_text(n, "program");
    char fix[160];
    snprintf(fix, sizeof(fix), "install the same version on all members, %.32s or %.32s", ours,
             theirs);
    if (theirs[0] && ours[0] && strcmp(theirs, ours) != 0)
        poor(f, fix, "it runs shoal %.32s, this gateway %.32s", theirs, ours);
}

static void look_at_node(struct findings *f, const cJSON *n, const cJSON *cluster, int64_t now_s)
{
    char fix[320];
    f->where = server_ask_text(n, "name");
    snprintf(fix, sizeof(fix),
             "see whether the machine is up and shoal runs there, and whether %.128s can be "
             "reached from the gateway",
             server_ask_text(n, "address"));
    if (is(n, "state", "lost") || is(n, "state", "unknown")) {
        bad(f, fix, "it is not heard: %.200s", server_ask_text(n, "error"));
        return; /* what it said before is old */
    }
    if (is(n, "state", "draining"))
        poor(f, "when it shall work again: shoal cluster undrain NAME, or start it again",
             "it is being drained and takes no requests");
    look_at_link(f, n);
    look_at_clock(f, n);
    look_at_version(f, n, server_ask_text(cluster, "program"));
    look_at_memory(f, n);
    look_at_health(f, item(n, "health"), now_s);
    look_at_models(f, n);
}

/* Another one with its name is heard at another address: it was started twice, or a folder with a
 * certificate was copied. */
static void look_for_twin(struct findings *f, const cJSON *n)
{
    f->where = server_ask_text(n, "name");
    for (const cJSON *k = n->next; k && f->where[0]; k = k->next) {
        if (!is(k, "name", f->where) || is(k, "state", "lost") || is(k, "state", "unknown") ||
            is(n, "state", "lost") || is(n, "state", "unknown"))
            continue;
        bad(f, "end one of them, or give it a name and a certificate of its own: shoal ca issue",
            "two processes run under this name, at %.100s and %.100s: one gets no models",
            server_ask_text(n, "address"), server_ask_text(k, "address"));
        return;
    }
}

/* ---- the shoal ---- */

static void look_at_control(struct findings *f, const cJSON *o)
{
    const char *gap = server_ask_text(o, "gap");
    if (is(o, "nats", "away"))
        bad(f, "see whether nats-server runs: shoal cluster events says since when",
            "NATS cannot be reached: nothing is deployed, moved or replaced");
    if (is(o, "nats", "up") && !server_ask_text(o, "controller")[0])
        bad(f, "start a member whose certificate has the role controller",
            "no member is the controller: nothing is deployed, moved or replaced");
    if (gap[0])
        poor(f, "shoal cluster desired shows what is known", "%.250s", gap);
}

static void look_at_desired(struct findings *f, const cJSON *o)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, item(item(o, "desired"), "models"))
    {
        const double want = server_ask_number(m, "want"), ready = server_ask_number(m, "ready");
        if (ready >= want)
            continue;
        static const char fix[] = "shoal cluster plan says what keeps it from a node";
        if (ready < server_ask_number(m, "min"))
            bad(f, fix, "model %.64s waits: %.0f of at least %.0f replicas are ready",
                server_ask_text(m, "name"), ready, server_ask_number(m, "min"));
        else
            poor(f, fix, "model %.64s has %.0f of %.0f replicas", server_ask_text(m, "name"), ready,
                 want);
    }
}

/* Errors first, otherwise as they were found. */
static void sort(struct findings *f)
{
    for (size_t i = 0, n_errors = 0; i < f->n; i++) {
        const struct cluster_finding x = f->v[i];
        if (!x.error)
            continue;
        memmove(&f->v[n_errors + 1], &f->v[n_errors], (i - n_errors) * sizeof(x));
        f->v[n_errors++] = x;
    }
}

size_t cluster_findings(struct cluster_finding out[CLUSTER_FINDINGS_MAX], const cJSON *cluster,
                        int64_t now_s)
{
    struct findings f = {.v = out, .where = ""};
    const cJSON *n, *nodes = item(cluster, "nodes");
    bool self = false;
    if (cJSON_GetArraySize(nodes) == 0)
        bad(&f, "start one: shoal node; and name it to the gateway with --node, or by NATS",
            "no node is known");
    look_at_control(&f, cluster);
    look_at_desired(&f, cluster);
    cJSON_ArrayForEach(n, nodes)
    {
        self |= cJSON_IsTrue(item(n, "self"));
        look_at_node(&f, n, cluster, now_s);
        look_for_twin(&f, n);
    }
    f.where = server_ask_text(cluster, "member");
    if (!self)
        look_at_health(&f, item(cluster, "health"), now_s);
    sort(&f);
    return f.n;
}
