/* ask_understand.c - see ask_understand.h. */
#include "apps/home/ask/ask_understand.h"

#include <string.h>

#include "apps/home/table/home_words.h"
#include "apps/home/turn/home_turn.h"

/* One inference of a clause.  Each writes to its own fields of the clause, so results need no lock;
 * an engine delivers its results one after the other. */
struct part {
    struct ask_request *r;
    struct home_clause *clause;
    enum { PART_INTENT, PART_ROUTER, PART_ENTITIES, PART_COMMAND, PART_ACTS } which;
};

static void take_label(struct part *p, const struct shoal_result *res)
{
    struct arena *a = &p->r->arena;
    /* the best label, however uncertain: the rules compare it with the threshold */
    const char *name = arena_printf(a, "%s", res->labels[0].name);
    if (p->which == PART_INTENT) {
        p->clause->intent = name;
        p->clause->intent_p = res->labels[0].score;
    } else {
        p->clause->router = name;
        p->clause->router_p = res->labels[0].score;
        p->clause->flow = ask_request_flow(p->r->ask, name);
    }
}

/* Converts a span in bytes to words from..to-1; false: it has none. */
static bool span_words(const char *text, const struct shoal_span *s, uint32_t *from, uint32_t *to)
{
    uint32_t word = 0;
    bool inside = false;
    *from = UINT32_MAX;
    for (uint32_t b = 0; b < s->end && text[b]; b++) {
        bool space = strchr(" \t\n\v\f\r", text[b]) != NULL;
        if (!space && !inside)
            word++;
        inside = !space;
        if (!space && b >= s->start) {
            *from = *from == UINT32_MAX ? word - 1 : *from;
            *to = word;
        }
    }
    return *from != UINT32_MAX;
}

static void take_acts(struct ask_request *r, const struct shoal_result *res)
{
    for (uint32_t i = 0; i < res->n_spans && r->n_parts < ASK_MAX_PARTS; i++) {
        struct home_part *p = &r->parts[r->n_parts];
        *p = (struct home_part){.speech = home_table_speech(res->spans[i].label),
                                .p = res->spans[i].score};
        if (span_words(r->text, &res->spans[i], &p->from, &p->to) &&
            (r->n_parts == 0 || p->from >= p[-1].to))
            r->n_parts++;
    }
}

static void take_command(struct ask_request *r, const struct shoal_result *res)
{
    for (uint32_t i = 0; i < res->n_labels; i++)
        if (home_table_speech(res->labels[i].name) == HOME_SPEECH_COMMAND)
            r->command_p = res->labels[i].score;
}

/* Converts spans in bytes to entities in words. */
static void take_entities(struct part *p, const struct shoal_result *res)
{
    struct arena *a = &p->r->arena;
    const char *text = p->clause->text;
    struct home_entity *list = arena_zalloc_n(a, (size_t)res->n_spans + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < res->n_spans; i++) {
        struct home_entity *e = &list[n];
        *e = (struct home_entity){0};
        if (!span_words(text, &res->spans[i], &e->from, &e->to))
            continue;
        e->type = arena_printf(a, "%s", res->spans[i].label);
        n++;
    }
    p->clause->entities = list;
    p->clause->n_entities = list ? n : 0;
}

static void part_result(void *ctx, const struct shoal_result *res)
{
    struct part *p = ctx;
    struct ask_request *r = p->r;
    if (res->code < 0)
        ask_request_fail(r, res->code, res->message);
    else if (p->which == PART_COMMAND)
        take_command(r, res);
    else if (p->which == PART_ACTS)
        take_acts(r, res);
    else if (p->which == PART_ENTITIES)
        take_entities(p, res);
    else
        take_label(p, res);
    r->step_tokens += p->which == PART_INTENT || p->which == PART_ACTS ? res->n_tokens : 0;
    ask_request_part_done(r);
}

static void submit_part(struct ask_request *r, struct part *p)
{
    const struct home_table *table = r->ask->table;
    const char *const sets[] = {table->intent_labels, table->router_labels, table->entity_labels,
                                table->act_labels, table->act_labels};
    bool tags = p->which == PART_ENTITIES || p->which == PART_ACTS, acts = !p->clause;
    const char *text = acts ? r->text : p->clause->text;
    struct err e = {0};
    struct shoal_task *t;
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = tags ? SHOAL_KIND_TAG : SHOAL_KIND_CLASSIFY,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .labels = sets[p->which],
                                 .deadline_ns = r->deadline_ns,
                                 .priority = r->priority,
                                 .client = r->client,
                                 .weight = r->weight,
                                 .done = part_result,
                                 .done_ctx = p};
    struct shoal_engine *engine = acts ? r->act_engine : r->ask->encoder;
    if (!engine) {
        r->away->ops->infer(r->away, acts ? ASK_MODEL_ACT : ASK_MODEL_ENCODER, &o);
        return;
    }
    if (shoal_infer_submit(engine, &o, &t, &e) < 0) {
        ask_request_fail(r, e.code, e.msg);
        ask_request_part_done(r);
        return;
    }
    ask_request_keep_task(r, t);
}

/* Finds the words that are commands. */
void ask_understand_acts(struct ask_request *r)
{
    struct part *parts = arena_zalloc_n(&r->arena, 2, sizeof(*parts));
    r->stage = ASK_STAGE_ACT;
    /* as below */
    atomic_store_explicit(&r->pending, parts ? 3u : 1u, memory_order_relaxed);
    for (uint32_t i = 0; parts && i < 2; i++) {
        parts[i] = (struct part){.r = r, .which = i ? PART_ACTS : PART_COMMAND};
        submit_part(r, &parts[i]);
    }
    ask_request_part_done(r);
}

/* Runs the encoder on the marked clauses from `only` on, or with NULL on all of them. */
void ask_understand_clauses(struct ask_request *r, const bool *only)
{
    uint32_t n = r->n_clauses * ASK_PER_CLAUSE, n_parts = 0;
    struct part *parts = arena_zalloc_n(&r->arena, n + 1, sizeof(*parts));
    for (uint32_t i = 0; parts && i < n; i++) {
        if (only && !only[i / ASK_PER_CLAUSE])
            continue;
        parts[n_parts] = (struct part){.r = r, .clause = &r->clauses[i / ASK_PER_CLAUSE]};
        parts[n_parts++].which = i % ASK_PER_CLAUSE == 0   ? PART_INTENT
                                 : i % ASK_PER_CLAUSE == 1 ? PART_ROUTER
                                                           : PART_ENTITIES;
    }
    r->stage = ASK_STAGE_UNDERSTAND;
    /* one more, so that the stage cannot end while its parts are being submitted */
    atomic_store_explicit(&r->pending, n_parts + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n_parts; i++)
        submit_part(r, &parts[i]);
    ask_request_part_done(r);
}

/* The thing that a clause names last: "the kitchen lights"; NULL: none. */
static const char *thing_in(struct ask_request *r, const struct home_clause *c)
{
    struct home_words w = home_words_split(&r->arena, c->text);
    const char *room = "", *thing = NULL;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        bool is_room = strcmp(e->type, "room") == 0;
        if (!is_room && strcmp(e->type, "device") != 0 && strcmp(e->type, "machine") != 0)
            continue;
        const char *text = home_words_trim_end(
            &r->arena, home_words_join(&r->arena, &w, e->from, e->to), HOME_WORDS_CLOSING);
        if (is_room)
            room = text;
        else
            thing = text;
    }
    return thing ? arena_printf(&r->arena, "the %s%s%s", room, *room ? " " : "", thing) : NULL;
}

void ask_understand_places(struct ask_request *r, const struct home_clause *c,
                           struct home_focus *out)
{
    const struct home_table *t = r->ask->table;
    struct home_words w = home_words_split(&r->arena, c->text);
    struct home_piece *list = arena_zalloc_n(&r->arena, (size_t)c->n_entities + 1, sizeof(*list));
    uint32_t n = list ? home_fill_pieces(&r->arena, t, c, &w, list) : 0;
    if (r->file && n > 0)
        n = home_fill_names(&r->arena, t, r->file, &w, list, n);
    out->said = c->text;
    out->room_from = out->room_to = out->thing_from = out->thing_to = 0;
    out->value_from = out->value_to = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct home_piece *p = &list[i];
        const char *name = p->slot ? p->slot->name : "";
        if (strcmp(name, "room") == 0) {
            out->room_from = p->from;
            out->room_to = p->to;
        } else if (strcmp(name, "device") == 0 || strcmp(name, "machine") == 0) {
            out->thing_from = p->from;
            out->thing_to = p->to;
        } else if (p->slot &&
                   (p->slot->type == HOME_SLOT_VALUE || p->slot->type == HOME_SLOT_DURATION)) {
            out->value_from = p->from;
            out->value_to = p->to;
        }
    }
}

/* "Turn off the tv, or rather the radio": a fragment after a retraction is the same command with
 * another thing. The retracted clause is then ignored. */
static bool correct(struct ask_request *r, uint32_t i)
{
    const struct home_table *t = r->ask->table;
    struct home_clause *c = &r->clauses[i], *was = i > 0 ? &r->clauses[i - 1] : NULL;
    struct home_focus f = {0};
    if (!was || c->speech != HOME_SPEECH_COMMAND || was->speech != HOME_SPEECH_RETRACT)
        return false;
    struct home_words w = home_words_split(&r->arena, c->text);
    struct home_words plain = home_words_plain_all(&r->arena, &w);
    for (uint32_t k = 0; k < w.n; k++)
        if (home_table_word(t, plain.w[k]) & HOME_WORD_VERB)
            return false;
    ask_understand_places(r, was, &f);
    const char *text = home_turn_instead(&r->arena, t, r->file, &f, c->text);
    if (!text)
        return false;
    c->text = text;
    was->corrected = true;
    return true;
}

/* Replaces "it" in the clauses by its meaning, and runs the encoder on them again; false: nothing
 * to replace. */
bool ask_understand_refer(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_focus f;
    bool *again = arena_zalloc_n(&r->arena, ASK_MAX_CLAUSES, sizeof(*again)), any = false;
    if (r->referred || t->pronouns.n == 0 || !again)
        return false;
    r->referred = true;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &f);
    const char *last = f.device    ? arena_printf(&r->arena, "the %s%s%s", f.room ? f.room : "",
                                               f.room ? " " : "", f.device)
                       : f.machine ? arena_printf(&r->arena, "the %s", f.machine)
                                   : NULL;
    for (uint32_t i = 0; i < r->n_clauses; i++) {
        struct home_clause *c = &r->clauses[i];
        struct home_words w = home_words_split(&r->arena, c->text);
        struct home_words plain = home_words_plain_all(&r->arena, &w);
        const char *own = thing_in(r, c);
        if (correct(r, i)) {
            again[i] = any = true;
            continue;
        }
        if (f.room && w.n > 1 && c->speech == HOME_SPEECH_COMMAND &&
            home_table_lists(&t->places, plain.w[w.n - 1])) {
            bool front = home_table_lists(&t->front, plain.w[w.n - 2]); /* "in there" */
            w.w[w.n - 1] = arena_printf(&r->arena, "%sthe %s", front ? "" : "in ", f.room);
            c->text = home_words_join(&r->arena, &w, 0, w.n);
            again[i] = any = true;
        }
        if (own || c->speech != HOME_SPEECH_COMMAND || w.n > 8 ||
            home_speech_takes_back(t, &plain) == w.n) {
            last = own ? own : last;
            continue;
        }
        for (uint32_t k = 0; last && k < w.n; k++)
            if (home_table_lists(&t->pronouns, plain.w[k]) && !again[i]) {
                w.w[k] = last;
                again[i] = any = true;
            }
        if (again[i])
            c->text = home_words_join(&r->arena, &w, 0, w.n);
    }
    if (any && r->arena.rc == 0)
        ask_understand_clauses(r, again);
    return any && r->arena.rc == 0;
}
