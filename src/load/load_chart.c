/* load_chart.c - see load_chart.h.  Colours are classes of the page around it (load_report.c). */
#include "load/load_chart.h"

#include <math.h>

#define WIDTH 640.0
#define HEIGHT 240.0
#define LEFT 60.0
#define TOP 34.0
#define PLOT_W (WIDTH - LEFT - 16.0)
#define PLOT_H (HEIGHT - TOP - 42.0)
#define N_TICKS 6u

double load_chart_step(double most, unsigned n_ticks)
{
    if (!(most > 0.0))
        return 1.0;
    const double raw = most / n_ticks, power = pow(10.0, floor(log10(raw)));
    const double part = raw / power;
    return power * (part <= 1.0 ? 1.0 : part <= 2.0 ? 2.0 : part <= 5.0 ? 5.0 : 10.0);
}

static double most_of(const struct load_chart *c, size_t of_y)
{
    double most = 0.0;
    for (size_t s = 0; s < c->n_series; s++)
        for (size_t i = 0; i < c->series[s].n; i++) {
            const double v = of_y ? c->series[s].y[i] : c->series[s].x[i];
            most = v > most ? v : most; /* false for NAN */
        }
    return most;
}

static void put_axes(struct buf *b, const struct load_chart *c, double x_step, double x_top,
                     double y_step, double y_top)
{
    for (double v = 0.0; v <= y_top * 1.0001; v += y_step) {
        const double y = TOP + PLOT_H - v / y_top * PLOT_H;
        buf_printf(b, "<path class=\"grid\" d=\"M%g %.1fh%g\"/>", LEFT, y, PLOT_W);
        buf_printf(b, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>", LEFT - 6.0,
                   y + 4.0, v);
    }
    for (double v = 0.0; v <= x_top * 1.0001; v += x_step)
        buf_printf(b, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%g</text>",
                   LEFT + v / x_top * PLOT_W, TOP + PLOT_H + 16.0, v);
    buf_printf(b, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>", LEFT + PLOT_W / 2.0,
               HEIGHT - 8.0, c->x_label);
    buf_printf(b, "<text x=\"8\" y=\"14\" class=\"title\">%s, %s</text>", c->title, c->y_label);
}

void load_chart_svg(struct buf *b, const struct load_chart *c)
{
    const double x_most = most_of(c, 0), y_most = most_of(c, 1);
    const double x_step = load_chart_step(x_most, N_TICKS + 2),
                 y_step = load_chart_step(y_most, N_TICKS);
    const double x_top = x_most > 0.0 ? x_most : 1.0,
                 y_top = y_most > 0.0 ? ceil(y_most / y_step) * y_step : y_step;
    buf_printf(b, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">", WIDTH, HEIGHT,
               c->title);
    put_axes(b, c, x_step, x_top, y_step, y_top);
    for (size_t s = 0; s < c->n_series; s++) {
        const struct load_series *line = &c->series[s];
        bool pen = false;
        buf_printf(b, "<path class=\"line s%zu\" d=\"", s);
        for (size_t i = 0; i < line->n; i++) {
            if (isnan(line->y[i]))
                continue;
            buf_printf(b, "%c%.1f %.1f", pen ? 'L' : 'M', LEFT + line->x[i] / x_top * PLOT_W,
                       TOP + PLOT_H - line->y[i] / y_top * PLOT_H);
            pen = true;
        }
        buf_printf(b, "\"/><text class=\"legend s%zu\" x=\"%g\" y=\"28\">%s</text>", s,
                   LEFT + (double)s * 130.0, line->name);
    }
    buf_puts(b, "</svg>\n");
}
