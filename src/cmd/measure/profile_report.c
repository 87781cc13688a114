/* profile_report.c - see profile_report.h. */
#include "cmd/measure/profile_report.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "wire/json_out.h"

#define BETWEEN "between" /* passes: choosing, planning, starting, ending */
#define SVG_WIDTH 1200.0
#define SVG_ROW 18.0
#define MIN_PIXELS 0.3

/* ---- sums ---- */

static struct profile_row *row_of(struct profile_shape *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_rows; i++)
        if (strcmp(s->rows[i].name, name) == 0)
            return &s->rows[i];
    if (s->n_rows == PROFILE_MAX_ROWS)
        return &s->rows[PROFILE_MAX_ROWS - 1];
    s->rows[s->n_rows] = (struct profile_row){.name = name};
    return &s->rows[s->n_rows++];
}

static double limit_of(const struct profile_shape *s, const struct profile_part *p)
{
    const double read = s->gb_s > 0 ? (double)p->bytes / s->gb_s : 0;
    const double compute = s->gops > 0 ? 2.0 * (double)p->products / s->gops : 0;
    return read > compute ? read : compute;
}

static void add_part(struct profile_shape *s, const struct profile_part *p, uint64_t wall_ns)
{
    if (!p->name)
        return;
    struct profile_row *r = row_of(s, p->name);
    r->n++;
    r->wall_ns += wall_ns;
    r->bytes += p->bytes;
    r->products += p->products;
    r->limit_ns += limit_of(s, p);
}

/* From the end of the pass before, or the beginning of all, until this one was planned. */
static uint64_t between(const struct profile_shape *s, uint32_t i)
{
    const uint64_t before = i > 0 ? s->f->phases[i - 1].done_ns : s->from_ns;
    return s->f->phases[i].open_ns > before ? s->f->phases[i].open_ns - before : 0;
}

static bool begins_pass(const struct decoder_profile *f, uint32_t i)
{
    return i == 0 || f->phases[i].pass != f->phases[i - 1].pass;
}

static uint64_t busy_ns(const struct profile_shape *s, uint32_t member)
{
    const struct profile_event *v = s->f->members[member].events;
    uint64_t ns = 0;
    for (uint32_t i = 0; i < s->n_events[member]; i++)
        ns += v[i].to_ns - v[i].from_ns;
    return ns;
}

void profile_sum(struct profile_shape *s)
{
    const struct decoder_profile *f = s->f;
    s->n_rows = 0;
    s->sum_ns = 0;
    for (uint32_t i = 0; i < f->n_phases; i++) {
        const struct profile_phase *x = &f->phases[i];
        add_part(s, &x->chunks, x->finish_ns - x->open_ns);
        add_part(s, &x->finish, x->done_ns - x->finish_ns);
        if (begins_pass(f, i))
            add_part(s, &(const struct profile_part){.name = BETWEEN}, between(s, i));
    }
    if (f->n_phases > 0) { /* until whoever waited for the last pass runs again */
        const uint64_t end = s->from_ns + s->whole_ns, done = f->phases[f->n_phases - 1].done_ns;
        row_of(s, BETWEEN)->wall_ns += end > done ? end - done : 0;
    }
    for (uint32_t m = 0; m < f->n_members; m++) {
        s->n_events[m] = atomic_load_explicit(&f->members[m].n, memory_order_acquire);
        for (uint32_t i = 0; i < s->n_events[m]; i++) {
            const struct profile_event *v = &f->members[m].events[i];
            const struct profile_phase *x = &f->phases[v->phase];
            row_of(s, v->finish ? x->finish.name : x->chunks.name)->busy_ns +=
                v->to_ns - v->from_ns;
        }
    }
    for (uint32_t i = 0; i < s->n_rows; i++)
        s->sum_ns += s->rows[i].wall_ns;
}

static uint64_t layer_ns(const struct decoder_profile *f, int32_t layer)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < f->n_phases; i++)
        if (f->phases[i].layer == layer)
            ns += f->phases[i].done_ns - f->phases[i].open_ns;
    return ns;
}

/* ---- table ---- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0;
}

static void put_row(struct buf *b, const struct profile_shape *s, const struct profile_row *r)
{
    const double wall = (double)r->wall_ns, members = s->f->n_members;
    char speed[24] = "-", limit[24] = "-", wait[24] = "-";
    if (r->bytes > 0 && wall > 0)
        snprintf(speed, sizeof(speed), "%.1f", (double)r->bytes / wall);
    if (r->limit_ns > 0 && wall > 0)
        snprintf(limit, sizeof(limit), "%.0f%%", percent(r->limit_ns, wall));
    if (strcmp(r->name, BETWEEN) != 0)
        snprintf(wait, sizeof(wait), "%.0f%%",
                 percent(wall * members - (double)r->busy_ns, wall * members));
    buf_printf(b, "  %-10s %7llu %11.3f %6.1f%% %10.3f %8s %9s %7s\n", r->name,
               (unsigned long long)r->n, wall / 1e6, percent(wall, (double)s->whole_ns),
               (double)r->bytes / 1e6, speed, limit, wait);
}

static void put_layers(struct buf *b, const struct profile_shape *s)
{
    uint64_t least = UINT64_MAX, most = 0, head = layer_ns(s->f, -1);
    uint32_t slow = 0;
    for (uint32_t i = 0; i < s->n_layers; i++) {
        const uint64_t ns = layer_ns(s->f, (int32_t)i);
        slow = ns > most ? i : slow;
        most = ns > most ? ns : most;
        least = ns < least ? ns : least;
    }
    buf_printf(b, "  layers: %u, each %.3f to %.3f ms (layer %u); embedding and output %.3f ms\n",
               s->n_layers, (double)least / 1e6, (double)most / 1e6, slow, (double)head / 1e6);
}

void profile_put_table(struct buf *b, const struct profile_shape *s)
{
    buf_printf(b, "%s: %u token%s in %.3f ms, %.1f a second\n", s->name, s->n_tokens,
               s->n_tokens == 1 ? "" : "s", (double)s->whole_ns / 1e6,
               s->n_tokens * 1e9 / (double)s->whole_ns);
    buf_printf(b, "  %-10s %7s %11s %7s %10s %8s %9s %7s\n", "KERNEL", "CALLS", "MS", "SHARE", "MB",
               "GB/S", "OF LIMIT", "WAITS");
    for (uint32_t i = 0; i < s->n_rows; i++)
        put_row(b, s, &s->rows[i]);
    buf_printf(b, "  %-10s %7s %11.3f %6.1f%%\n", "sum", "", (double)s->sum_ns / 1e6,
               percent((double)s->sum_ns, (double)s->whole_ns));
    put_layers(b, s);
    buf_puts(b, "  threads:");
    for (uint32_t m = 0; m < s->f->n_members; m++)
        buf_printf(b, "%s %.0f%% busy", m ? "," : "",
                   percent((double)busy_ns(s, m), (double)s->whole_ns));
    buf_putc(b, '\n');
}

/* ---- JSON ---- */

static void put_json_row(struct json_out *j, const struct profile_row *r)
{
    json_out_object(j);
    json_out_member_str(j, "kernel", r->name);
    json_out_member_uint(j, "calls", r->n);
    json_out_member_num(j, "ms", (double)r->wall_ns / 1e6);
    json_out_member_num(j, "busy_ms", (double)r->busy_ns / 1e6);
    json_out_member_uint(j, "bytes", r->bytes);
    json_out_member_uint(j, "products", r->products);
    json_out_key(j, "of_limit");
    r->limit_ns > 0 && r->wall_ns > 0 ? json_out_rounded(j, r->limit_ns / (double)r->wall_ns, 4)
                                      : json_out_null(j);
    json_out_object_end(j);
}

static void put_json_shape(struct json_out *j, const struct profile_shape *s)
{
    json_out_object(j);
    json_out_member_str(j, "name", s->name);
    json_out_member_uint(j, "tokens", s->n_tokens);
    json_out_member_uint(j, "passes", s->f->n_passes);
    json_out_member_num(j, "ms", (double)s->whole_ns / 1e6);
    json_out_member_num(j, "sum_ms", (double)s->sum_ns / 1e6);
    json_out_member_uint(j, "left_out", atomic_load(&s->f->n_left_out));
    json_out_key(j, "kernels");
    json_out_array(j);
    for (uint32_t i = 0; i < s->n_rows; i++)
        put_json_row(j, &s->rows[i]);
    json_out_array_end(j);
    json_out_key(j, "layers_ms");
    json_out_array(j);
    for (uint32_t i = 0; i < s->n_layers; i++)
        json_out_num(j, (double)layer_ns(s->f, (int32_t)i) / 1e6);
    json_out_array_end(j);
    json_out_key(j, "threads");
    json_out_array(j);
    for (uint32_t m = 0; m < s->f->n_members; m++) {
        const double busy = (double)busy_ns(s, m);
        json_out_object(j);
        json_out_member_num(j, "busy_ms", busy / 1e6);
        json_out_member_num(j, "wait_ms", ((double)s->whole_ns - busy) / 1e6);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

void profile_put_json(struct buf *b, const struct profile_shape *s, uint32_t n_shapes)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "memory_gb_s"); /* limits of the machine; 0: not measured */
    json_out_num(&j, s->gb_s);
    json_out_member_num(&j, "int8_gops", s->gops);
    json_out_key(&j, "shapes");
    json_out_array(&j);
    for (uint32_t i = 0; i < n_shapes; i++)
        put_json_shape(&j, &s[i]);
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* ---- flame graph ---- */

struct flame {
    struct buf *b;
    double scale; /* pixels per ns */
};

static void put_box(const struct flame *g, double x_ns, unsigned level, uint64_t ns,
                    const char *name)
{
    const double w = (double)ns * g->scale, x = x_ns * g->scale, y = 30.0 + level * SVG_ROW;
    const uint64_t h = hash_bytes(name, strlen(name), 0);
    if (w < MIN_PIXELS)
        return;
    buf_printf(g->b,
               "<g><title>%s: %.3f ms</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
               "height=\"%.1f\" rx=\"1\" fill=\"hsl(%u,70%%,%u%%)\"/>",
               name, (double)ns / 1e6, x, y, w, SVG_ROW - 1, (unsigned)(h % 50) + 10,
               (unsigned)(h / 64 % 20) + 55);
    if (w > 7.0 * (double)strlen(name) + 6)
        buf_printf(g->b, "<text x=\"%.2f\" y=\"%.1f\">%s</text>", x + 3, y + SVG_ROW - 5, name);
    buf_puts(g->b, "</g>\n");
}

/* The kernels of a layer side by side, each with all its passes. */
static uint64_t put_layer(const struct flame *g, const struct profile_shape *s, int32_t layer,
                          double at)
{
    struct profile_shape one = {.f = s->f};
    char name[24] = "embed, output";
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->f->n_phases; i++) {
        const struct profile_phase *x = &s->f->phases[i];
        if (x->layer != layer)
            continue;
        add_part(&one, &x->chunks, x->finish_ns - x->open_ns);
        add_part(&one, &x->finish, x->done_ns - x->finish_ns);
    }
    for (uint32_t i = 0; i < one.n_rows; i++) {
        put_box(g, at + (double)sum, 3, one.rows[i].wall_ns, one.rows[i].name);
        sum += one.rows[i].wall_ns;
    }
    if (layer >= 0)
        snprintf(name, sizeof(name), "layer %d", layer);
    put_box(g, at, 2, sum, name);
    return sum;
}

static void put_shape(const struct flame *g, const struct profile_shape *s, double at)
{
    double x = at;
    put_box(g, at, 1, s->whole_ns, s->name);
    for (int32_t i = -1; i < (int32_t)s->n_layers; i++)
        x += (double)put_layer(g, s, i, x);
    for (uint32_t i = 0; i < s->n_rows; i++)
        if (strcmp(s->rows[i].name, BETWEEN) == 0)
            put_box(g, x, 2, s->rows[i].wall_ns, BETWEEN);
}

/* Only what a name of a file may have that XML does not take. */
static void put_escaped(struct buf *b, const char *s)
{
    for (; *s; s++)
        if (*s == '<' || *s == '>' || *s == '&' || *s == '"' || (unsigned char)*s < ' ')
            buf_printf(b, "&#%d;", (unsigned char)*s < ' ' ? '?' : *s);
        else
            buf_putc(b, *s);
}

void profile_put_svg(struct buf *b, const struct profile_shape *s, uint32_t n_shapes,
                     const char *title)
{
    uint64_t whole = 0;
    double at = 0;
    for (uint32_t i = 0; i < n_shapes; i++)
        whole += s[i].whole_ns;
    const struct flame g = {b, whole ? SVG_WIDTH / (double)whole : 0};
    buf_printf(b,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" "
               "height=\"100%%\" fill=\"#fff\"/>\n<text x=\"4\" y=\"18\" font-size=\"14\">",
               SVG_WIDTH, 36 + 4 * SVG_ROW);
    put_escaped(b, title);
    buf_puts(b, "</text>\n");
    put_box(&g, 0, 0, whole, "all");
    for (uint32_t i = 0; i < n_shapes; i++) {
        put_shape(&g, &s[i], at);
        at += (double)s[i].whole_ns;
    }
    buf_puts(b, "</svg>\n");
}

/* ---- Chrome ---- */

static void put_event(struct json_out *j, const struct profile_shape *s, uint32_t member,
                      const struct profile_event *v, uint64_t zero_ns)
{
    const struct profile_phase *x = &s->f->phases[v->phase];
    json_out_object(j);
    json_out_member_str(j, "name", v->finish ? x->finish.name : x->chunks.name);
    json_out_member_str(j, "cat", s->name);
    json_out_member_str(j, "ph", "X");
    json_out_member_uint(j, "pid", 1);
    json_out_member_uint(j, "tid", member);
    json_out_member_num(j, "ts", (double)(v->from_ns - zero_ns) / 1e3);
    json_out_member_num(j, "dur", (double)(v->to_ns - v->from_ns) / 1e3);
    json_out_key(j, "args");
    json_out_object(j);
    json_out_key(j, "layer");
    json_out_int(j, x->layer);
    json_out_member_uint(j, "pass", x->pass);
    json_out_object_end(j);
    json_out_object_end(j);
}

void profile_put_chrome(struct buf *b, const struct profile_shape *s, uint32_t n_shapes)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "traceEvents");
    json_out_array(&j);
    for (uint32_t k = 0; k < n_shapes; k++)
        for (uint32_t m = 0; m < s[k].f->n_members; m++)
            for (uint32_t i = 0; i < s[k].n_events[m]; i++)
                put_event(&j, &s[k], m, &s[k].f->members[m].events[i], s[0].from_ns);
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}
