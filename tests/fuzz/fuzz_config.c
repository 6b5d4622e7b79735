/* The configuration of a session as the injection library reads it. The checksum would refuse nearly every input, so
 * each is also tried with a correct one; what decodes encodes to a text that decodes to the same. */
#include "fuzz.h"

#include "core/bytes.h"
#include "core/config.h"

#include <string.h>

static void decode(const void *data, size_t size)
{
    kprof_config config = {0}, again = {0};
    KPROF_AUTO(kprof_strbuf) first = KPROF_STRBUF_INIT, second = KPROF_STRBUF_INIT;
    if (kprof_config_decode(data, size, &config) == KPROF_OK) {
        for (size_t i = 0; i < config.chip_count; i++) {
            for (unsigned bits = 0; bits < KPROF_IMAGES; bits++)
                (void)kprof_chip_image_choose(&config.chips[i], bits);
        }
        FUZZ_CHECK(kprof_config_encode(&config, &first) == KPROF_OK);
        FUZZ_CHECK(kprof_config_decode(first.data, first.length, &again) == KPROF_OK);
        FUZZ_CHECK(kprof_config_encode(&again, &second) == KPROF_OK);
        FUZZ_CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
        kprof_config_free(&again);
    }
    kprof_config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KPROF_AUTO(kprof_strbuf) checked = KPROF_STRBUF_INIT;
    decode(data, size);
    kprof_strbuf_append(&checked, data, size);
    kprof_put_u32(&checked, kprof_crc32c(0, data, size));
    decode(checked.data, checked.length);
    return 0;
}
