/* graph_draw.c - see graph_draw.h. */
#include "pipeline/graph/graph_draw.h"

#include <string.h>

#include "pipeline/graph/graph_kind.h"

#define BOX_W 150
#define BOX_H 46
#define GAP_X 70
#define GAP_Y 26
#define MARGIN 24
#define MAX_SHOWN 19u /* characters in a box */

/* Boxes: the input, the steps, the output. */
struct layout {
    const struct graph *g;
    uint32_t column[GRAPH_MAX_STEPS + 2], row[GRAPH_MAX_STEPS + 2];
    uint32_t n_columns, n_rows;
};

static int x_of(const struct layout *l, uint32_t box)
{
    return MARGIN + (int)l->column[box] * (BOX_W + GAP_X);
}

static int y_of(const struct layout *l, uint32_t box)
{
    return MARGIN + (int)l->row[box] * (BOX_H + GAP_Y);
}

static bool has(uint64_t set, uint32_t step)
{
    return set & (1ull << step);
}

/* A step is drawn to the right of its dependencies, and of whatever leads to it. */
static void find_columns(struct layout *l)
{
    const struct graph *g = l->g;
    uint32_t last = 1;
    for (uint32_t i = 0; i < g->n_steps; i++)
        l->column[i + 1] = 1;
    for (uint32_t round = 0; round < g->n_steps; round++)
        for (uint32_t i = 0; i < g->n_steps; i++)
            for (uint32_t k = 0; k < g->n_steps; k++)
                if ((has(g->steps[i].needs, k) || has(g->steps[k].leads, i)) &&
                    g->steps[k].body != (int32_t)i && l->column[i + 1] <= l->column[k + 1] &&
                    !has(g->steps[k].needs, i))
                    l->column[i + 1] = l->column[k + 1] + 1;
    for (uint32_t i = 0; i < g->n_steps; i++) {
        if (g->steps[i].body_of >= 0) /* drawn beside its map */
            l->column[i + 1] = l->column[g->steps[i].body_of + 1];
        last = l->column[i + 1] > last ? l->column[i + 1] : last;
    }
    l->column[g->n_steps + 1] = last + 1;
    l->n_columns = last + 2;
}

static void find_rows(struct layout *l)
{
    uint32_t used[GRAPH_MAX_STEPS + 2] = {0};
    for (uint32_t box = 0; box < l->g->n_steps + 2; box++) {
        l->row[box] = used[l->column[box]]++;
        l->n_rows = l->row[box] + 1 > l->n_rows ? l->row[box] + 1 : l->n_rows;
    }
}

static void put_escaped(struct buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (s[i]) {
        case '<':
            buf_puts(b, "&lt;");
            break;
        case '>':
            buf_puts(b, "&gt;");
            break;
        case '&':
            buf_puts(b, "&amp;");
            break;
        case '"':
            buf_puts(b, "&quot;");
            break;
        default:
            buf_putc(b, (unsigned char)s[i] < ' ' ? ' ' : s[i]);
        }
}

static void put_text(struct buf *b, int x, int y, const char *class, const char *s)
{
    size_t n = strlen(s), shown = n;
    if (n > MAX_SHOWN) {
        shown = MAX_SHOWN - 1;
        while (shown > 0 && ((unsigned char)s[shown] & 0xc0) == 0x80)
            shown--;
    }
    buf_printf(b, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
    put_escaped(b, s, shown);
    buf_puts(b, n > shown ? "\xe2\x80\xa6</text>\n" : "</text>\n");
}

static void put_box(struct buf *b, const struct layout *l, uint32_t box, const char *class,
                    const char *name, const char *below)
{
    int x = x_of(l, box), y = y_of(l, box);
    buf_printf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"%s\"/>\n", x,
               y, BOX_W, BOX_H, class);
    put_text(b, x + BOX_W / 2, y + 20, "name", name);
    put_text(b, x + BOX_W / 2, y + 36, "kind", below);
}

static void put_edge(struct buf *b, const struct layout *l, uint32_t from, uint32_t to,
                     const char *class)
{
    int x1 = x_of(l, from) + BOX_W, y1 = y_of(l, from) + BOX_H / 2, x2 = x_of(l, to),
        y2 = y_of(l, to) + BOX_H / 2;
    if (l->column[from] == l->column[to]) { /* a map and its step */
        x1 -= BOX_W / 2;
        x2 += BOX_W / 2;
        y1 += y1 < y2 ? BOX_H / 2 : -BOX_H / 2;
        y2 += y1 < y2 ? -BOX_H / 2 : BOX_H / 2;
    }
    buf_printf(b, "<path d=\"M%d %d C%d %d %d %d %d %d\" class=\"%s\"/>\n", x1, y1, x1 + GAP_X / 2,
               y1, x2 - GAP_X / 2, y2, x2, y2, class);
}

struct uses {
    bool input;
};

static int on_name(void *ctx, const char *name, size_t n, size_t at)
{
    struct uses *u = ctx;
    (void)at;
    u->input |= n == 5 && memcmp(name, "input", 5) == 0;
    return 0;
}

static bool uses_input(const struct graph_step *s)
{
    struct uses u = {false};
    for (uint32_t i = 0; i < s->n_args; i++)
        (void)graph_expr_names(s->args[i].expr, on_name, &u);
    return u.input;
}

static void put_edges(struct buf *b, const struct layout *l)
{
    const struct graph *g = l->g;
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct graph_step *s = &g->steps[i];
        if (uses_input(s) && s->body_of < 0)
            put_edge(b, l, 0, i + 1, "edge");
        for (uint32_t k = 0; k < g->n_steps; k++) {
            if (has(s->needs, k) && s->body_of < 0)
                put_edge(b, l, k + 1, i + 1, "edge");
            if (has(s->leads, k))
                put_edge(b, l, i + 1, k + 1, "lead");
        }
        if (has(g->output_needs, i))
            put_edge(b, l, i + 1, g->n_steps + 1, "edge");
    }
}

static const char style[] =
    "<style>text{font-family:system-ui,sans-serif;text-anchor:middle}"
    ".name{font-size:14px;font-weight:600;fill:#1b2733}.kind{font-size:12px;fill:#5a6b7b}"
    ".title{font-size:15px;font-weight:600;fill:#1b2733}"
    ".step{fill:#eef4fb;stroke:#3b74b8}.lazy{fill:#fff;stroke:#3b74b8;stroke-dasharray:5 4}"
    ".acts{fill:#fdf1e3;stroke:#c07a1b}.end{fill:#e9f6ec;stroke:#3c8d53}"
    ".edge{fill:none;stroke:#8596a6;stroke-width:1.5;marker-end:url(#a)}"
    ".lead{fill:none;stroke:#8596a6;stroke-width:1.5;stroke-dasharray:5 4;marker-end:url(#a)}"
    "</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
    "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
    "fill=\"#8596a6\"/></marker></defs>\n";

void graph_draw_svg(struct buf *b, const struct graph *g)
{
    struct layout l = {.g = g};
    find_columns(&l);
    find_rows(&l);
    int w = 2 * MARGIN + (int)l.n_columns * (BOX_W + GAP_X) - GAP_X;
    int h = 2 * MARGIN + (int)l.n_rows * (BOX_H + GAP_Y) - GAP_Y;
    buf_printf(b,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 "
               "%d %d\" role=\"img\">\n<title>",
               w, h, w, h);
    put_escaped(b, g->name, strlen(g->name));
    buf_puts(b, "</title>\n");
    buf_puts(b, style);
    put_edges(b, &l);
    put_box(b, &l, 0, "end", "input", g->n_inputs > 0 ? "text and more" : "text");
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct graph_step *s = &g->steps[i];
        const struct graph_kind_info *k = &graph_kinds[s->spec.kind];
        put_box(b, &l, i + 1, s->lazy ? "lazy" : k->acts ? "acts" : "step", s->spec.name, k->name);
    }
    put_box(b, &l, g->n_steps + 1, "end", "output",
            graph_type_name(graph_expr_type(g->output.expr)));
    buf_puts(b, "</svg>\n");
}
