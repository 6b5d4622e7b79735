/* Command lines: each line of the input is a word. What parses is also checked, and gives help and completions if it
 * asks for them; words that are joined into a text split into the same words. */
#include "fuzz.h"

#include "cli/commands.h"
#include "cli/words.h"

#include <string.h>

enum { MAX_WORDS = 64 };

static void check_words(char **words)
{
    KPROF_AUTO(kprof_strlist) split = KPROF_STRLIST_INIT;
    KPROF_AUTO_FREE char *text = kprof_words_join(words, NULL);
    kprof_words_split(text, &split);
    for (size_t i = 0; i < split.count; i++)
        FUZZ_CHECK(words[i] && strcmp(words[i], split.items[i]) == 0);
    FUZZ_CHECK(words[split.count] == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    char *words[MAX_WORDS + 2] = {strdup("kprof")};
    size_t count = 1;
    kprof_options options;
    for (char *word; count < MAX_WORDS && (word = fuzz_take_line(&input));)
        words[count++] = word;
    check_words(words);
    if (kprof_options_parse(words, &options) == KPROF_OK) {
        FUZZ_CHECK(options.command != NULL);
        (void)!kprof_filter_check(&options.filter);
        if (options.complete) /* instead of running the command */
            (void)!kprof_complete(&options, fuzz_nowhere());
        else if (options.command->run == kprof_cmd_help)
            kprof_help_print(&options, fuzz_nowhere());
    }
    kprof_options_free(&options);
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    return 0;
}
