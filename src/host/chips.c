/* Facts about chips: CUPTI tells only their names. */
#include "host/host.h"

#include "core/log.h"

#include <ctype.h>
#include <strings.h>

#define LEAST_CAPABILITY 75 /* that kprof supports; CUPTI has metrics of older chips, too */

/* NVIDIA publishes these. A chip may be missing: then nothing is known of it. */
static const kprof_chip table[] = {
    {"GP100", 60, "P100"},
    {"GP102", 61, "P40, GTX 1080 Ti"},
    {"GP104", 61, "P4, GTX 1080"},
    {"GV100", 70, "V100, TITAN V"},
    {"GV11B", 72, "Jetson AGX Xavier"},
    {"TU102", 75, "Quadro RTX 6000, RTX 2080 Ti"},
    {"TU104", 75, "T4, RTX 2080"},
    {"TU106", 75, "RTX 2070, RTX 2060"},
    {"TU116", 75, "GTX 1660"},
    {"TU117", 75, "GTX 1650"},
    {"GA100", 80, "A100, A30"},
    {"GA102", 86, "A40, A10, RTX A6000, RTX 3090"},
    {"GA103", 86, "RTX 3080 Ti Laptop"},
    {"GA104", 86, "RTX A4000, RTX 3070"},
    {"GA106", 86, "RTX A2000, RTX 3060"},
    {"GA107", 86, "A16, A2"},
    {"GA10B", 87, "Jetson AGX Orin"},
    {"GH100", 90, "H100, H200, GH200"},
    {"AD102", 89, "L40, L40S, RTX 4090"},
    {"AD103", 89, "RTX 4080"},
    {"AD104", 89, "L4, RTX 4070"},
    {"AD106", 89, "RTX 4060 Ti"},
    {"AD107", 89, "RTX 4060"},
    {"GB100", 100, "B200, GB200"},
    {"GB110", 103, "B300, GB300"},
    {"GB10B", 110, "Jetson AGX Thor"},
    {"GB202", 120, "RTX PRO 6000 Blackwell, RTX 5090"},
    {"GB203", 120, "RTX 5080"},
    {"GB205", 120, "RTX 5070"},
    {"GB206", 120, "RTX 5060 Ti"},
    {"GB207", 120, "RTX 5050"},
    {"GB20B", 121, "GB10, DGX Spark"},
};

const kprof_chip *kprof_chip_find(const char *name)
{
    return KPROF_FIRST(it, table, COUNT_OF(table), strcasecmp(it->name, name) == 0);
}

bool kprof_chip_is_too_old(const char *name)
{
    const kprof_chip *found = kprof_chip_find(name);
    return found && found->capability < LEAST_CAPABILITY;
}

/* "sm_80", "compute_90a", "8.0" or "80"; 0: it is no compute capability. */
static int capability_of(const char *word)
{
    static const char *const prefixes[] = {"sm", "compute", "cc"};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        const size_t length = strlen(prefixes[i]);
        if (strncasecmp(word, prefixes[i], length) == 0) {
            word += length;
            word += strspn(word, "_- ");
            break;
        }
    }
    const size_t digits = strspn(word, "0123456789");
    const char *rest = word + digits;
    if ((digits == 1 || digits == 2) && rest[0] == '.' && isdigit((unsigned char)rest[1]) && rest[2] == '\0')
        return atoi(word) * 10 + (rest[1] - '0');
    const bool is_plain = (digits == 2 || digits == 3) && (rest[0] == '\0' || strcmp(rest, "a") == 0);
    return is_plain ? atoi(word) : 0;
}

/* Do they differ in nothing but capitals, blanks and dashes? */
static bool is_same_name(const char *word, const char *name, size_t length)
{
    static const char ignored[] = " -_";
    const char *end = name + length;
    for (;;) {
        word += strspn(word, ignored);
        while (name < end && strchr(ignored, *name))
            name++;
        if (name == end || *word == '\0')
            return name == end && *word == '\0';
        if (strncasecmp(word++, name++, 1) != 0)
            return false;
    }
}

static bool has_digit(const char *text, const char *end)
{
    while (text < end && !isdigit((unsigned char)*text))
        text++;
    return text < end;
}

/* "RTX4090", "4090" and "NVIDIA RTX 4090" are the RTX 4090. A shorter word such as "Ti" is no name, and neither is a
 * part without the number of a name that has one. */
static bool is_gpu_of(const char *word, const kprof_chip *chip)
{
    enum { LEAST_LETTERS = 4 };
    static const char maker[] = "nvidia ";
    word += strncasecmp(word, maker, sizeof maker - 1) == 0 ? sizeof maker - 1 : 0;
    for (const char *gpu = chip->gpus; *gpu; gpu += strspn(gpu, ", ")) {
        const char *end = gpu + strcspn(gpu, ",");
        bool is_whole = true;
        for (const char *part = gpu; part < end; part += part < end) {
            const bool is_long = end - part >= LEAST_LETTERS && has_digit(part, end) == has_digit(gpu, end);
            if ((is_whole || is_long) && is_same_name(word, part, (size_t)(end - part)))
                return true;
            is_whole = false;
            while (part < end && *part != ' ')
                part++;
        }
        gpu = end;
    }
    return false;
}

static bool is_of_architecture(const char *word, int capability)
{
    static const struct {
        const char *name;
        int first, last; /* compute capabilities */
    } architectures[] = {{"Pascal", 60, 62}, {"Volta", 70, 72},        {"Turing", 75, 75}, {"Ampere", 80, 87},
                         {"Ada", 89, 89},    {"Ada Lovelace", 89, 89}, {"Hopper", 90, 90}, {"Blackwell", 100, 121}};
    for (size_t i = 0; i < COUNT_OF(architectures); i++)
        if (is_same_name(word, architectures[i].name, strlen(architectures[i].name)))
            return capability >= architectures[i].first && capability <= architectures[i].last;
    return false;
}

static bool is_meant(const char *word, const kprof_chip *chip)
{
    return strcasecmp(word, chip->name) == 0 || is_gpu_of(word, chip) || is_of_architecture(word, chip->capability) ||
           capability_of(word) == chip->capability;
}

static size_t leading_letters(const char *name)
{
    size_t count = 0;
    while (isalpha((unsigned char)name[count]))
        count++;
    return count;
}

static kprof_status refuse_unknown(const char *word, const kprof_strlist *known)
{
    KPROF_AUTO(kprof_strbuf) hint = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (is_meant(word, &table[i]) && kprof_strlist_contains(known, table[i].name))
            kprof_strbuf_printf(&hint, "%s\"%s\"", hint.length ? " or " : "did you mean ", table[i].name);
    /* "GH10" may be GH100, but the letters tell architectures apart: P100 is not GA100. */
    const size_t letters = leading_letters(word);
    const char *nearest = hint.length ? NULL : kprof_nearest(word, (const char *const *)known->items, known->count);
    if (nearest && leading_letters(nearest) == letters && strncasecmp(word, nearest, letters) == 0)
        kprof_strbuf_printf(&hint, "did you mean \"%s\"", nearest);
    return kprof_fail(KPROF_UNKNOWN_NAME,
                      "chip \"%s\" is not known; %s%skprof list chips has the names to give, such as GH100,GB202", word,
                      hint.length ? hint.data : "", hint.length ? "? " : "");
}

kprof_status kprof_chip_check(const char *word, const kprof_strlist *known)
{
    const kprof_chip *found = kprof_chip_find(word);
    if (known && kprof_strlist_contains(known, word))
        return KPROF_OK;
    for (size_t i = 0; i < COUNT_OF(table) && !found; i++)
        found = is_meant(word, &table[i]) ? &table[i] : NULL; /* the oldest ones are equally old */
    if (!found || found->capability >= LEAST_CAPABILITY)
        return known ? refuse_unknown(word, known) : KPROF_OK;
    const bool is_name = strcasecmp(word, found->name) == 0;
    return kprof_fail(KPROF_UNSUPPORTED,
                      "%s%s%schip %s has compute capability %d.%d, and kprof supports %d.%d and higher; kprof list "
                      "chips shows those that it supports",
                      is_name ? "" : "\"", is_name ? "" : word, is_name ? "" : "\" is too old: ", found->name,
                      found->capability / 10, found->capability % 10, LEAST_CAPABILITY / 10, LEAST_CAPABILITY % 10);
}
