/* panel_tokens.c - see panel_tokens.h. */
#include "flow/panel/panel_tokens.h"

#include <string.h>

static const struct sink_logprob *copy_logprobs(struct arena *a, const struct sink_token *e)
{
    struct sink_logprob *list = arena_zalloc_n(a, e->n_logprobs, sizeof(*list));
    for (uint32_t i = 0; list && i < e->n_logprobs; i++) {
        list[i] = e->logprobs[i];
        list[i].text = arena_copy(a, e->logprobs[i].text, e->logprobs[i].text_bytes);
        if (!list[i].text)
            list[i].text_bytes = 0;
    }
    return list;
}

void panel_tokens_add(struct panel_tokens *t, struct arena *a, const struct sink_token *e,
                      bool logprobs)
{
    struct panel_token *x = arena_zalloc(a, sizeof(*x));
    const char *text = x ? arena_copy(a, e->text, e->text_bytes) : NULL;
    if (!text)
        return;
    x->event = *e;
    x->event.choice = 0;
    x->event.text = text;
    x->event.logprobs = logprobs && e->logprobs ? copy_logprobs(a, e) : NULL;
    x->event.n_logprobs = x->event.logprobs ? e->n_logprobs : 0;
    if (t->last)
        t->last->next = x;
    else
        t->first = x;
    t->last = x;
    t->n++;
    t->text_bytes += e->text_bytes;
}

void panel_tokens_send(const struct panel_tokens *t, struct sink *to)
{
    for (const struct panel_token *x = t->first; x; x = x->next)
        to->ops->token(to, &x->event);
}

const char *panel_tokens_text(const struct panel_tokens *t, struct arena *a)
{
    char *text = arena_bytes(a, t->text_bytes + 1);
    size_t at = 0;
    if (!text)
        return "";
    for (const struct panel_token *x = t->first; x; x = x->next) {
        memcpy(text + at, x->event.text, x->event.text_bytes);
        at += x->event.text_bytes;
    }
    text[at] = '\0';
    return text;
}
