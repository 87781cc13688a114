/* load_run.c - see load_run.h.
 *
 * A timerfd wakes the loop when the next request is due: the timers of the loop may be 5 ms late,
 * which is more than many answers take. */
#include "load/load_run.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "load/load_reply.h"
#include "net/http1_client.h"
#include "net/loop.h"

#define PROGRESS_NS 250000000u
#define MAX_REQUEST_BYTES ((size_t)64 << 20)
#define MAX_TURNS_BYTES ((size_t)4 << 20)
#define MAX_ERROR_BYTES ((size_t)64 << 10)

/* A conversation, or one request. */
struct talk {
    struct run *run;
    struct talk *prev, *next; /* all of the run */
    struct talk *next_due;    /* waits for its next turn */
    uint64_t due;             /* of that turn */
    struct http1_call call;
    struct load_reply reply;
    struct executor_timer timer;
    struct executor_task free;
    struct buf request, turns, answer, prompt;
    size_t record;
    uint32_t part, n_left, max_tokens;
    bool open;
};

struct run {
    struct load_plan *plan;
    const struct load_run_opts *o;
    struct load_log *log;
    struct loop *loop;
    struct http1_client *client;
    struct loop_io due_io, stop_io;
    struct executor_timer progress;
    uint64_t start, last_sent, seed; /* ns */
    struct load_item item;           /* the next of the plan */
    struct talk *talks, *due_first, *due_last;
    uint64_t n_ok, n_failed, n_open;
    bool has_item, stopped;
};

static uint64_t since(const struct run *r, uint64_t ns)
{
    return ns > r->start ? ns - r->start : 1; /* 0 means: did not happen */
}

/* ---- a request and its answer ---- */

static void talk_free(struct executor_task *t)
{
    struct talk *k = LOOP_OF(t, struct talk, free);
    struct run *r = k->run;
    if (k->prev)
        k->prev->next = k->next;
    else
        r->talks = k->next;
    if (k->next)
        k->next->prev = k->prev;
    load_reply_fini(&k->reply);
    buf_fini(&k->request);
    buf_fini(&k->turns);
    buf_fini(&k->answer);
    buf_fini(&k->prompt);
    mem_free(k);
}

static void on_gap(void *ctx, uint64_t ns)
{
    load_log_gap(ctx, ns);
}

static void talk_send(struct talk *k, const char *prompt, uint64_t due)
{
    struct run *r = k->run;
    const struct load_part *part = &r->plan->mix->part[k->part];
    struct load_record *rec = &r->log->records[k->record];
    rec->due = due;
    rec->part = (uint8_t)k->part;
    buf_clear(&k->request);
    load_request_put(&k->request, r->o->target, part, buf_str(&k->turns), prompt, k->max_tokens);
    if (k->n_left > 1)
        load_request_turn(&k->turns, "user", prompt);
    load_reply_fini(&k->reply);
    load_reply_init(&k->reply);
    k->reply.gap = on_gap;
    k->reply.ctx = r->log;
    buf_clear(&k->answer);
    k->reply.text = k->n_left > 1 ? &k->answer : NULL;
    k->call.request = buf_str(&k->request);
    k->call.n_request = k->request.len;
    k->open = true;
    r->n_open++;
    loop_timer_set(r->loop, &k->timer, r->start + due + (uint64_t)r->o->timeout_ms * 1000000u);
    http1_call_start(r->client, &k->call);
}

static void schedule(struct run *r);

/* Ends the request; the conversation goes on or is over. */
static void talk_ended(struct talk *k)
{
    struct run *r = k->run;
    struct load_record *rec = &r->log->records[k->record];
    const uint64_t now = clock_ns();
    loop_timer_clear(r->loop, &k->timer);
    k->open = false;
    r->n_open--;
    rec->end = since(r, now);
    rec->sent = k->call.sent_ns ? since(r, k->call.sent_ns) : 0;
    rec->n_pieces = k->reply.n_pieces;
    rec->n_tokens = k->reply.n_tokens;
    if (k->reply.n_pieces > 0) {
        rec->first = since(r, k->reply.first_ns);
        rec->last = since(r, k->reply.last_ns);
    }
    r->n_ok += rec->outcome == LOAD_OK;
    r->n_failed += rec->outcome != LOAD_OK && rec->outcome != LOAD_UNFINISHED;
    const uint64_t due = rec->end + (uint64_t)r->o->think_ms * 1000000u;
    const bool in_time = r->plan->end_ns == 0 || due < r->plan->end_ns;
    if (rec->outcome != LOAD_OK || k->n_left <= 1 || !in_time || r->stopped) {
        loop_later(r->loop, &k->free);
        return;
    }
    k->n_left--;
    load_request_turn(&k->turns, "assistant", buf_str(&k->answer));
    k->due = due;
    k->next_due = NULL;
    if (r->due_last)
        r->due_last->next_due = k;
    else
        r->due_first = k;
    r->due_last = k;
    schedule(r);
}

static void on_data(struct http1_call *c, int status, const char *p, size_t n)
{
    struct talk *k = LOOP_OF(c, struct talk, call);
    if (status == 200)
        load_reply_data(&k->reply, p, n, clock_ns());
    else if (k->reply.line.len + n < MAX_ERROR_BYTES)
        buf_put(&k->reply.line, p, n);
}

static void answered(struct talk *k, int status)
{
    struct load_log *log = k->run->log;
    struct load_record *rec = &log->records[k->record];
    const struct load_reply *a = &k->reply;
    const bool streams = k->run->plan->mix->part[k->part].kind != LOAD_CLASSIFY;
    load_reply_end(&k->reply, clock_ns());
    if (status == 429 || status == 503)
        load_log_error(log, k->record, LOAD_REFUSED, status, a->error);
    else if (status != 200)
        load_log_error(log, k->record, status / 100 == 4 ? LOAD_CLIENT : LOAD_SERVER, status,
                       a->error);
    else if (a->error[0])
        load_log_error(log, k->record, LOAD_REPORTED, status, a->error);
    else if (a->bad)
        load_log_error(log, k->record, LOAD_FORMAT, status, "the answer is not JSON");
    else if (streams && !a->done)
        load_log_error(log, k->record, LOAD_BROKEN, status,
                       "the stream ended without its last event");
    else
        rec->outcome = LOAD_OK;
    rec->status = (uint16_t)status;
}

static void on_ended(struct http1_call *c, int status)
{
    struct talk *k = LOOP_OF(c, struct talk, call);
    answered(k, status);
    talk_ended(k);
}

static void on_failed(struct http1_call *c, int code, const char *message)
{
    struct talk *k = LOOP_OF(c, struct talk, call);
    const enum load_outcome o = code == SHOAL_ENOTFOUND ? LOAD_CONNECT
                                : code == SHOAL_EFORMAT ? LOAD_FORMAT
                                                        : LOAD_BROKEN;
    load_log_error(k->run->log, k->record, o, 0, message);
    talk_ended(k);
}

static const struct http1_call_ops call_ops = {
    .data = on_data, .ended = on_ended, .failed = on_failed};

static void on_timeout(struct executor_timer *t)
{
    struct talk *k = LOOP_OF(t, struct talk, timer);
    http1_call_cancel(&k->call);
    load_log_error(k->run->log, k->record, LOAD_TIMEOUT, 0,
                   "no complete answer within the timeout");
    talk_ended(k);
}

/* ---- what is due ---- */

static void begin(struct run *r)
{
    struct talk *k = mem_zalloc(sizeof(*k));
    const size_t record = k ? load_log_add(r->log) : SIZE_MAX;
    if (record == SIZE_MAX) { /* this machine is the limit: end, and say what was seen */
        mem_free(k);
        r->stopped = true;
        return;
    }
    const bool chats = r->plan->mix->part[r->item.part].kind == LOAD_CHAT;
    *k = (struct talk){.run = r,
                       .next = r->talks,
                       .call = {.ops = &call_ops},
                       .timer = {.fn = on_timeout},
                       .free = {.fn = talk_free},
                       .record = record,
                       .part = r->item.part,
                       .n_left = chats && r->o->n_turns > 1 ? r->o->n_turns : 1,
                       .max_tokens = r->item.max_tokens};
    if (r->talks)
        r->talks->prev = k;
    r->talks = k;
    buf_init(&k->request, MAX_REQUEST_BYTES);
    buf_init(&k->turns, MAX_TURNS_BYTES);
    buf_init(&k->answer, MAX_TURNS_BYTES);
    buf_init(&k->prompt, MAX_TURNS_BYTES);
    load_reply_init(&k->reply);
    if (!r->item.prompt)
        load_plan_words(&k->prompt, r->item.n_words, &r->seed);
    talk_send(k, r->item.prompt ? r->item.prompt : buf_str(&k->prompt), r->item.at_ns);
}

static void next_turn(struct run *r)
{
    struct talk *k = r->due_first;
    struct load_item item = {0};
    r->due_first = k->next_due;
    if (!r->due_first)
        r->due_last = NULL;
    const size_t record = load_log_add(r->log);
    if (record == SIZE_MAX) {
        loop_later(r->loop, &k->free);
        r->stopped = true;
        return;
    }
    k->record = record;
    load_plan_prompt(r->plan, LOAD_CHAT, &item);
    buf_clear(&k->prompt);
    if (!item.prompt)
        load_plan_words(&k->prompt, item.n_words, &r->seed);
    talk_send(k, item.prompt ? item.prompt : buf_str(&k->prompt), k->due);
}

/* When the next request is due, after the start; UINT64_MAX: none is. */
static uint64_t next_due(const struct run *r)
{
    const uint64_t turn = r->due_first ? r->due_first->due : UINT64_MAX;
    const uint64_t plan = r->has_item ? r->item.at_ns : UINT64_MAX;
    return turn < plan ? turn : plan;
}

static void schedule(struct run *r)
{
    const uint64_t due = next_due(r);
    const uint64_t at = r->start + due;
    struct itimerspec when = {0};
    if (due == UINT64_MAX)
        return;
    when.it_value.tv_sec = (time_t)(at / 1000000000u);
    when.it_value.tv_nsec = (long)(at % 1000000000u);
    timerfd_settime(r->due_io.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void on_due(struct loop_io *io, uint32_t events)
{
    struct run *r = LOOP_OF(io, struct run, due_io);
    uint64_t n, due;
    (void)events;
    if (read(io->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        return;
    const uint64_t now = clock_ns() - r->start;
    while (!r->stopped && (due = next_due(r)) <= now) {
        if (r->due_first && r->due_first->due == due) {
            next_turn(r);
        } else {
            begin(r);
            r->has_item = load_plan_next(r->plan, &r->item);
        }
        r->last_sent = now;
    }
    schedule(r);
}

static void on_stop(struct loop_io *io, uint32_t events)
{
    struct run *r = LOOP_OF(io, struct run, stop_io);
    (void)events;
    r->stopped = true;
}

static void show(struct run *r)
{
    const uint64_t now = clock_ns() - r->start;
    const double part = r->o->planned_ns ? (double)now / (double)r->o->planned_ns : 0.0;
    const struct load_progress p = {.n_sent = r->log->n,
                                    .n_ok = r->n_ok,
                                    .n_failed = r->n_failed,
                                    .n_open = r->n_open,
                                    .part = part < 1.0 ? part : 1.0};
    if (r->o->progress)
        r->o->progress(r->o->ctx, &p);
}

static void on_progress(struct executor_timer *t)
{
    struct run *r = LOOP_OF(t, struct run, progress);
    show(r);
    loop_timer_set(r->loop, t, loop_now(r->loop) + PROGRESS_NS);
}

static bool is_over(const struct run *r)
{
    if (r->stopped)
        return true;
    if (next_due(r) != UINT64_MAX)
        return false;
    return r->n_open == 0 ||
           (r->o->drain_ns > 0 && clock_ns() - r->start > r->last_sent + r->o->drain_ns);
}

/* Ends what is still open: interrupted, or longer than anybody waits for. */
static void end_all(struct run *r)
{
    const bool interrupted = r->stopped;
    r->stopped = true; /* no further turn begins */
    for (struct talk *k = r->talks; k; k = k->next) {
        if (!k->open)
            continue;
        http1_call_cancel(&k->call);
        if (!interrupted)
            load_log_error(r->log, k->record, LOAD_TIMEOUT, 0,
                           "no complete answer by the end of the run");
        talk_ended(k);
    }
}

static int open_io(struct run *r, struct err *e)
{
    r->due_io = (struct loop_io){.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                                 .fn = on_due};
    if (r->due_io.fd < 0)
        return err_set(e, SHOAL_EIO, "cannot create a timer: %s", strerror(errno));
    int rc = loop_io_add(r->loop, &r->due_io, EPOLLIN, e);
    r->stop_io = (struct loop_io){.fd = r->o->stop_fd, .fn = on_stop};
    if (rc == 0 && r->o->stop_fd >= 0)
        rc = loop_io_add(r->loop, &r->stop_io, EPOLLIN, e);
    return rc;
}

int load_run(struct load_plan *plan, const struct load_run_opts *o, struct load_log *log,
             bool *stopped, struct err *e)
{
    struct run r = {.plan = plan,
                    .o = o,
                    .log = log,
                    .due_io = {.fd = -1},
                    .progress = {.fn = on_progress},
                    .seed = plan->seed ^ 0x5bd1e995u};
    const struct http1_client_opts to = {
        .address = o->target->address, .tls = o->tls, .max_connections = o->max_connections};
    *stopped = false;
    int rc = loop_create(&r.loop, e);
    if (rc == 0)
        rc = http1_client_create(&r.client, r.loop, &to, e);
    if (rc == 0)
        rc = open_io(&r, e);
    if (rc == 0) {
        const uint64_t cpu = clock_process_ns();
        r.start = clock_ns();
        r.has_item = load_plan_next(plan, &r.item);
        schedule(&r);
        loop_timer_set(r.loop, &r.progress, r.start + PROGRESS_NS);
        while (!is_over(&r))
            loop_turn(r.loop, 100);
        *stopped = r.stopped;
        log->seconds = (double)(clock_ns() - r.start) / 1e9;
        log->cpu_s = (double)(clock_process_ns() - cpu) / 1e9;
        end_all(&r);
        loop_timer_clear(r.loop, &r.progress);
    }
    http1_client_destroy(r.client);
    if (r.loop)
        loop_flush(r.loop);
    while (r.talks) /* those that waited for their next turn */
        talk_free(&r.talks->free);
    if (r.loop && r.o->stop_fd >= 0 && r.stop_io.fn)
        loop_io_del(r.loop, &r.stop_io);
    if (r.due_io.fd >= 0) {
        loop_io_del(r.loop, &r.due_io);
        close(r.due_io.fd);
    }
    loop_destroy(r.loop);
    return rc;
}
