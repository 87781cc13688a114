/* place_kind.h - the kinds of places that models come from (model_place.h). */
#ifndef SHOAL_DEPOT_PLACE_KIND_H
#define SHOAL_DEPOT_PLACE_KIND_H

enum place_kind {
    PLACE_KIND_RECIPE, /* name: of the recipe */
    PLACE_KIND_HUB,    /* name: ORG/REPO[:TAG][@REVISION] */
    PLACE_KIND_OCI,    /* base: of the registry; name: PATH[:TAG] */
    PLACE_KIND_URL,    /* name: the URL */
    PLACE_KIND_PATH,   /* name: the path */
    PLACE_KIND_N
};

/* "recipes", "hub", "oci", "url", "path"; find: -1: none of them. */
const char *place_kind_name(enum place_kind kind);
int place_kind_find(const char *name);

#endif
