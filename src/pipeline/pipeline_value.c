/* pipeline_value.c - see pipeline_value.h. */
#include "pipeline/pipeline_value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/ascii.h"
#include "flow/ask_plan.h"
#include "knowledge/support.h"
#include "store/collection.h"

#define MAX_LABELS 8u /* the best ones */
#define MAX_TAGS 4096u

struct value pipeline_value_map(struct arena *a, const struct value_member *m, size_t n)
{
    struct value_member *copy = arena_zalloc_n(a, n, sizeof(*copy));
    if (copy)
        memcpy(copy, m, n * sizeof(*copy));
    return (struct value){.kind = VALUE_MAP, .map = {copy, copy ? n : 0}};
}

struct value pipeline_value_copy(struct arena *a, const char *p, size_t n)
{
    char *to = arena_bytes(a, n + 1);
    if (!to)
        return value_text("", 0);
    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    return value_text(to, n);
}

static struct value copy_str(struct arena *a, const char *s)
{
    return pipeline_value_copy(a, s ? s : "", s ? strlen(s) : 0);
}

/* Numbers in JSON are finite. */
static struct value number(double d)
{
    return pipeline_value_number(isfinite(d) ? d : 0);
}

static struct value list_of(struct value *items, size_t n)
{
    return (struct value){.kind = VALUE_LIST, .list = {items, items ? n : 0}};
}

/* ---- results of models ---- */

static struct value of_labels(struct arena *a, const struct shoal_result *r)
{
    uint32_t n = r->n_labels < MAX_LABELS ? r->n_labels : MAX_LABELS;
    struct value *list = arena_zalloc_n(a, n, sizeof(*list));
    for (uint32_t i = 0; list && i < n; i++) {
        const struct value_member m[] = {{"label", copy_str(a, r->labels[i].name)},
                                         {"score", number((double)r->labels[i].score)}};
        list[i] = pipeline_value_map(a, m, 2);
    }
    const struct value_member m[] = {{"label", copy_str(a, r->label)},
                                     {"score", number((double)r->confidence)},
                                     {"labels", list_of(list, n)}};
    return pipeline_value_map(a, m, 3);
}

static bool has_label(const struct value_member *v, size_t n, const char *label)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].key, label) == 0)
            return true;
    return false;
}

static struct value of_spans(struct arena *a, const struct shoal_result *r, const char *text)
{
    uint32_t n = r->n_spans < MAX_TAGS ? r->n_spans : MAX_TAGS;
    struct value *list = arena_zalloc_n(a, n, sizeof(*list));
    struct value_member *first = arena_zalloc_n(a, n, sizeof(*first));
    size_t n_first = 0;
    for (uint32_t i = 0; list && first && i < n; i++) {
        const struct shoal_span *s = &r->spans[i];
        const struct value words = pipeline_value_copy(a, text + s->start, s->end - s->start);
        const struct value label = copy_str(a, s->label);
        const struct value_member m[] = {{"label", label},
                                         {"text", words},
                                         {"score", number((double)s->score)},
                                         {"start", number(s->start_char)},
                                         {"end", number(s->end_char)}};
        list[i] = pipeline_value_map(a, m, 5);
        if (!has_label(first, n_first, label.text.p))
            first[n_first++] = (struct value_member){label.text.p, words};
    }
    const struct value_member m[] = {{"entities", list_of(list, n)},
                                     {"values", {.kind = VALUE_MAP, .map = {first, n_first}}},
                                     {"count", number(n)}};
    return pipeline_value_map(a, m, 3);
}

static struct value of_vector(struct arena *a, const struct shoal_result *r)
{
    struct value *list = arena_zalloc_n(a, r->n_dims, sizeof(*list));
    for (uint32_t i = 0; list && i < r->n_dims; i++)
        list[i] = number((double)r->vector[i]);
    const struct value_member m[] = {{"vector", list_of(list, r->n_dims)},
                                     {"dimensions", number(r->n_dims)}};
    return pipeline_value_map(a, m, 2);
}

static struct value of_values(struct arena *a, const struct shoal_result *r)
{
    struct value *list = arena_zalloc_n(a, r->n_values, sizeof(*list));
    for (uint32_t i = 0; list && i < r->n_values; i++)
        list[i] = number(r->values[i]);
    const struct value_member m[] = {{"score", number(r->n_values > 0 ? r->values[0] : 0)},
                                     {"values", list_of(list, r->n_values)}};
    return pipeline_value_map(a, m, 2);
}

struct value pipeline_value_result(struct arena *a, enum graph_kind kind,
                                   const struct shoal_result *r, const char *text)
{
    switch (kind) {
    case GRAPH_TAG:
        return of_spans(a, r, text);
    case GRAPH_EMBED:
        return of_vector(a, r);
    case GRAPH_SCORE:
        return of_values(a, r);
    case GRAPH_SUMMARIZE: {
        const struct value_member m[] = {{"text", pipeline_value_copy(a, r->text, r->text_bytes)}};
        return pipeline_value_map(a, m, 1);
    }
    default:
        return of_labels(a, r);
    }
}

/* ---- passages ---- */

static struct value of_hit(struct arena *a, const struct collection_hit *h)
{
    const struct value_member m[] = {
        {"id", number((double)h->id)},
        {"text", copy_str(a, h->text)},
        {"document", copy_str(a, h->doc)},
        {"heading", copy_str(a, h->heading[0] ? h->heading : h->title)},
        {"page", number(h->page)},
        {"score", number(h->score)}};
    return pipeline_value_map(a, m, 6);
}

struct value pipeline_value_passages(struct arena *a, const struct collection_hit *hits, uint32_t n)
{
    struct value *list = arena_zalloc_n(a, n, sizeof(*list));
    const char *text = "";
    for (uint32_t i = 0; list && i < n; i++) {
        const struct collection_hit *h = &hits[i];
        const char *head = h->heading[0] ? h->heading : h->title;
        list[i] = of_hit(a, h);
        text = arena_printf(a, "%s%s[%" PRId64 "]%s%s%s\n%s", text, i ? "\n\n" : "", h->id,
                            head[0] ? " (" : "", head, head[0] ? ")" : "", h->text);
    }
    const struct value_member m[] = {{"text", value_text(text, strlen(text))},
                                     {"passages", list_of(list, n)},
                                     {"count", number(n)},
                                     {"score", number(n > 0 ? hits[0].score : 0)}};
    return pipeline_value_map(a, m, 4);
}

/* Whether all marks such as [12] refer to given passages: a model may invent some. */
static bool marks_are_known(struct str answer, const struct value *hits, uint32_t n_hits)
{
    for (size_t i = 0; i < answer.n; i++) {
        size_t k = i + 1;
        double id = 0;
        bool known = answer.p[i] != '[';
        while (!known && k < answer.n && ascii_is_digit(answer.p[k]))
            id = 10 * id + (answer.p[k++] - '0');
        known |= k == i + 1 || k == answer.n || answer.p[k] != ']';
        for (uint32_t h = 0; h < n_hits && !known; h++) {
            const struct value *given = graph_type_member(&hits[h], "id", 2);
            known = given && given->number == id;
        }
        if (!known)
            return false;
    }
    return true;
}

struct value pipeline_value_support(struct arena *a, const struct support *s, struct str answer,
                                    const struct value *hits, uint32_t n_hits)
{
    const bool known = marks_are_known(answer, hits, n_hits);
    const enum support_verdict verdict =
        s->verdict == SUPPORT_TRUE && !known ? SUPPORT_PARTLY : s->verdict;
    struct value *cited = arena_zalloc_n(a, s->n, sizeof(*cited));
    struct value *wrong = arena_zalloc_n(a, s->n, sizeof(*wrong));
    uint32_t n_cited = 0, n_wrong = 0;
    bool seen[SUPPORT_MAX_PASSAGES] = {false};
    const char *sources = "";
    for (uint32_t i = 0; cited && wrong && i < s->n; i++) {
        const struct support_sentence *x = &s->sentences[i];
        if (!x->supported) {
            wrong[n_wrong++] = pipeline_value_copy(a, answer.p + x->at, x->n);
        } else if (x->passage >= 0 && !seen[x->passage]) {
            const struct value *id = graph_type_member(&hits[x->passage], "id", 2);
            seen[x->passage] = true;
            cited[n_cited++] = hits[x->passage];
            sources =
                arena_printf(a, "%s%s[%.0f]", sources, sources[0] ? " " : "", id ? id->number : 0);
        }
    }
    const struct value_member m[] = {{"supported", value_bool(verdict == SUPPORT_TRUE)},
                                     {"verdict", copy_str(a, support_verdict_name(verdict))},
                                     {"citations", list_of(cited, n_cited)},
                                     {"sources", value_text(sources, strlen(sources))},
                                     {"unsupported", list_of(wrong, n_wrong)}};
    return pipeline_value_map(a, m, 5);
}

/* ---- actions ---- */

struct value pipeline_value_action(struct arena *a, const struct ask_plan_action *x)
{
    struct value_member *m = arena_zalloc_n(a, x->n_fields + 1u, sizeof(*m));
    if (!m)
        return (struct value){.kind = VALUE_MAP};
    m[0] = (struct value_member){"action", copy_str(a, x->name)};
    for (uint32_t i = 0; i < x->n_fields; i++) {
        const struct ask_plan_field *f = &x->fields[i];
        struct value v = f->text ? copy_str(a, f->text) : number(f->number);
        if (f->n_items > 0) {
            struct value *list = arena_zalloc_n(a, f->n_items, sizeof(*list));
            for (uint32_t k = 0; list && k < f->n_items; k++)
                list[k] = copy_str(a, f->items[k]);
            v = list_of(list, f->n_items);
        }
        m[i + 1] = (struct value_member){copy_str(a, f->key).text.p, v};
    }
    return (struct value){.kind = VALUE_MAP, .map = {m, x->n_fields + 1u}};
}
