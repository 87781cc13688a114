/* read_class.h - what a text calls things against what a plan takes for them.
 *
 * A reader that does not know a word guesses a class ("mach alle Abdeckungen auf": all lights). The
 * table knows which class a word names, and that is a fact: a plan about another class is mended,
 * or nothing is done.
 *
 * Thread: any; belongs to the work. */
#ifndef SHOAL_APPS_HOME_READ_READ_CLASS_H
#define SHOAL_APPS_HOME_READ_READ_CLASS_H

#include "apps/home/read/read_work.h"

enum read_class {
    READ_CLASS_FITS,   /* or the text names no class */
    READ_CLASS_MENDED, /* the act is about the class that was named: only to be offered */
    READ_CLASS_WRONG,  /* nobody can tell what is meant */
};

/* alone: the plan has no other act, which the named class may belong to. */
enum read_class read_class_check(struct read_work *r, struct read_plan_act *act, bool alone);

/* "The lights and the tv": the act has things and, beside them, a class that the text names and
 * none of them belongs to. */
bool read_class_is_beside(struct read_work *r, const struct read_plan_act *act);

#endif
