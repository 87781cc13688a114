/* image_files.h - the files of tests/data/vision/images. */
#ifndef SHOAL_TESTS_IMAGE_FILES_H
#define SHOAL_TESTS_IMAGE_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Names of the files that have a reference of Pillow's beside them. */
static const char *const image_files[] = {
    "rgb.png",     "grey.png",    "palette.png", "alpha.png",   "deep.png",    "bits.png",
    "passes.png",  "turned.png",  "photo.jpg",   "grey.jpg",    "steps.jpg",   "full.jpg",
    "lossy.webp",  "exact.webp",  "alpha.webp",  "turned.webp", "turned1.jpg", "turned2.jpg",
    "turned3.jpg", "turned4.jpg", "turned5.jpg", "turned6.jpg", "turned7.jpg", "turned8.jpg"};
#define N_IMAGE_FILES (sizeof(image_files) / sizeof(image_files[0]))

/* The bytes of a file, for free; *n is 0 without it. */
static inline uint8_t *image_file(const char *name, size_t *n)
{
    static const size_t most = 64 << 10;
    char path[512];
    snprintf(path, sizeof(path), "%s/vision/images/%s", SHOAL_TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc(most);
    *n = f && bytes ? fread(bytes, 1, most, f) : 0;
    if (f)
        fclose(f);
    return bytes;
}

#endif
