/* Counter data images blank again without CUPTI, which takes 65 ms for 192 MiB whatever was written to them. An image
 * is a head, one block for each range, all the same as long as they are blank, and perhaps an end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kprof_blank kprof_blank;

/* Remember the head, the end and one block of the blank image[size] of `ranges` ranges. Each range adds `range_bytes`
 * to the size. NULL when the image does not look like that, or memory ran out. */
kprof_blank *kprof_blank_keep(const uint8_t *image, size_t size, size_t ranges, size_t range_bytes);
/* Make the same image blank again; its first `used` ranges have been written. False when others have been, as far as a
 * look at some of them tells: then the image is not blank. */
bool kprof_blank_restore(const kprof_blank *blank, uint8_t *image, size_t used);
void kprof_blank_free(kprof_blank *blank);
