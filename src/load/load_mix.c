/* load_mix.c - see load_mix.h. */
#include "load/load_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WEIGHT 1000u

static const struct {
    const char *name, *openai, *ollama;
} kinds[LOAD_KINDS] = {
    [LOAD_CHAT] = {"chat", "/v1/chat/completions", "/api/chat"},
    [LOAD_COMPLETION] = {"completion", "/v1/completions", "/api/generate"},
    [LOAD_CLASSIFY] = {"classify", "/v1/classify", NULL},
    [LOAD_ASK] = {"ask", "/v1/process", NULL},
};

const char *load_kind_name(enum load_kind k)
{
    return kinds[k].name;
}

enum load_kind load_kind_find(const char *name)
{
    unsigned k = 0;
    while (k < LOAD_KINDS && strcmp(kinds[k].name, name) != 0)
        k++;
    return (enum load_kind)k;
}

const char *load_kind_path(enum load_api api, enum load_kind k)
{
    return api == LOAD_OLLAMA ? kinds[k].ollama : kinds[k].openai;
}

int load_mix_part(struct load_mix *m, enum load_kind kind, const char *model)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->part[i].kind == kind && strcmp(m->part[i].model, model) == 0)
            return (int)i;
    if (m->n == LOAD_MAX_PARTS || strlen(model) >= sizeof(m->part[0].model))
        return -1;
    struct load_part *p = &m->part[m->n];
    *p = (struct load_part){.kind = kind};
    snprintf(p->model, sizeof(p->model), "%s", model);
    return (int)m->n++;
}

/* "[WEIGHT:]KIND[=MODEL]" */
static int parse_part(struct load_mix *m, char *word, struct err *e)
{
    char *end = word, *model;
    unsigned long weight = 1;
    if (word[0] >= '0' && word[0] <= '9')
        weight = strtoul(word, &end, 10);
    if (end != word && *end != ':')
        return err_set(e, SHOAL_EINVAL, "'%.80s': a ':' must follow the weight, as in 3:chat",
                       word);
    if (weight == 0 || weight > MAX_WEIGHT)
        return err_set(e, SHOAL_EINVAL, "'%.80s': weights are from 1 to %u", word, MAX_WEIGHT);
    char *name = end == word ? word : end + 1;
    if ((model = strchr(name, '=')))
        *model++ = '\0';
    const enum load_kind kind = load_kind_find(name);
    if (kind == LOAD_KINDS)
        return err_set(
            e, SHOAL_EINVAL,
            "unknown kind of request '%.80s'. Available: chat, completion, classify, ask", name);
    const int i = load_mix_part(m, kind, model ? model : "");
    if (i < 0)
        return err_set(e, SHOAL_EINVAL, "more than %u kinds and models, or a name that is too long",
                       LOAD_MAX_PARTS);
    m->part[i].weight += (uint32_t)weight;
    m->total += (uint32_t)weight;
    return 0;
}

int load_mix_parse(struct load_mix *m, const char *text, struct err *e)
{
    char copy[2048], *at = copy, *word;
    *m = (struct load_mix){0};
    if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
        return err_set(e, SHOAL_EINVAL, "the mix is too long");
    while ((word = strsep(&at, ","))) {
        int rc = parse_part(m, word, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

uint32_t load_mix_pick(const struct load_mix *m, uint64_t random)
{
    uint32_t at = (uint32_t)(random % m->total), i = 0;
    for (; i + 1 < m->n && at >= m->part[i].weight; i++)
        at -= m->part[i].weight;
    return i;
}
