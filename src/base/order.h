/* order.h - ascending order for qsort and bsearch.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_BASE_ORDER_H
#define SHOAL_BASE_ORDER_H

#include <stdint.h>
#include <string.h>

static inline int order_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int order_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static inline int order_text(const void *a, const void *b) /* of const char * */
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

#endif
