/* What a listing of nvdisasm gives the instructions, and what they wait for, in code of which that is known. */
#include "code/listing.h"

#include "code/fixture.h"
#include "test.h"

static void read_both(const char *cubin, const char *listing, kprof_code *code)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture(cubin, &size);
    assert_int_equal(kprof_code_read(bytes, size, NULL, code), KPROF_OK);
    KPROF_AUTO_FREE char *text = read_fixture(listing, &size);
    kprof_code_take_listing(code, text, size);
}

static void check_text(const kprof_code *code, const char *function, uint64_t offset, const char *expected)
{
    const kprof_code_function *found = find_function(code, function);
    const char *text = found->instructions[offset / KPROF_CODE_INSTRUCTION_BYTES].text;
    assert_string_equal(text, expected);
}

TEST(texts_are_in_their_places)
{
    kprof_code code;
    read_both("lengths_sm90.cubin", "lengths_sm90.sass", &code);
    check_text(&code, "lengths", 0, "LDC R1, c[0x0][0x28]");
    check_text(&code, "lengths", 0x70, "@P0 EXIT");
    check_text(&code, "lengths", 0x150, "BRA 0x150");
    check_text(&code, "lengths", 0x1f0, "NOP");
    check_text(&code, "doubled", 0x50, "LDG.E R2, desc[UR4][R2.64]");
    check_text(&code, "doubled", 0x70, "CALL.REL.NOINC $doubled$_Z5twicef");
    check_text(&code, "doubled", 0x100, "BRA 0x100");
    /* A part of a kernel begins at 0, too. */
    check_text(&code, "$doubled$_Z5twicef", 0x10, "FADD R5, R2, R2");
    check_text(&code, "$doubled$_Z5twicef", 0x40, "BRA 0x40");
    assert_string_equal(find_function(&code, "doubled")->instructions[5].access.space, "Global");
    assert_null(find_function(&code, "doubled")->instructions[7].access.space);
    kprof_code_free(&code);
    read_both("linked.cubin", "linked.sass", &code);
    check_text(&code, "quadrupled", 0x60, "MOV R20, 32@lo((quadrupled + .L_x_1@srel))");
    check_text(&code, "_Z5twicef", 0, "FADD R4, R4, R4");
    kprof_code_free(&code);
}

/* "OFFSET PRODUCER..." for each instruction that waits. */
static void check_waits(const kprof_code *code, const char *name, const char *expected)
{
    const kprof_code_function *function = find_function(code, name);
    kprof_strbuf found = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < function->count; i++) {
        const kprof_code_instruction *at = &function->instructions[i];
        if (at->wait_count > 0)
            kprof_strbuf_printf(&found, "%llx", (unsigned long long)at->offset);
        for (size_t j = 0; j < at->wait_count; j++)
            kprof_strbuf_printf(&found, " %llx", (unsigned long long)code->waits[at->first_wait + j]);
        if (at->wait_count > 0)
            kprof_strbuf_puts(&found, "\n");
    }
    KPROF_AUTO_FREE char *text = kprof_strbuf_take(&found);
    assert_string_equal(text, expected);
}

TEST(loads_are_found_where_their_values_are_used)
{
    kprof_code code;
    read_both("lengths_sm90.cubin", "lengths_sm90.sass", &code);
    check_waits(&code, "lengths",
                "40 10 20 30\n" /* IMAD: S2R, S2UR and LDC give thread, block and size */
                "c0 80\n"       /* addresses: LDC gives the pointers */
                "e0 a0\n"
                "100 b0\n"
                "110 d0\n" /* FMUL: the first LDG */
                "120 f0\n" /* FFMA: the second one */);
    kprof_code_free(&code);
}

/* The load at 150 and that at 1a0 give what FSETP compares and FMUL multiplies with; the loop's way back is one to the
 * load before it. SHFL waits in a way that calls a function, which ends the search but not what is known. */
TEST(waits_are_found_around_loops)
{
    kprof_code code;
    read_both("loop.cubin", "loop.sass", &code);
    check_waits(&code, "walk",
                "50 10\n"
                "e0 b0\n"
                "160 150\n"
                "190 180\n"
                "1c0 1a0\n"
                "1e0 1d0\n"
                "200 1f0\n"
                "240 110\n");
    kprof_code_free(&code);
}

/* DEPBAR.LE SB0, 0x1 lets the last group of copies go on, and waits for the one before it: that before the loop or that
 * of the last round. */
TEST(copies_are_waited_for_in_groups)
{
    kprof_code code;
    read_both("loop.cubin", "loop.sass", &code);
    const kprof_code_function *function = find_function(&code, "ahead");
    static const uint64_t expected[][4] = {
        {0x2b0, 0x80, 0x470}, {0x370, 0x200}, {0x410, 0x310}, {0x490, 0x3d0}, {0x610, 0x80, 0x470, 0x5f0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const kprof_code_instruction *at = &function->instructions[expected[i][0] / KPROF_CODE_INSTRUCTION_BYTES];
        assert_string_equal(at->text, "DEPBAR.LE SB0, 0x1");
        size_t count = 0;
        while (count < 3 && expected[i][count + 1] != 0)
            count++;
        assert_int_equal(at->wait_count, count);
        for (size_t j = 0; j < count; j++)
            assert_int_equal(code.waits[at->first_wait + j], expected[i][j + 1]);
    }
    kprof_code_free(&code);
}

static void take(const char *cubin, const char *listing, kprof_code *code)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture(cubin, &size);
    assert_int_equal(kprof_code_read(bytes, size, NULL, code), KPROF_OK);
    KPROF_AUTO_FREE char *text = strdup(listing);
    assert_non_null(text);
    kprof_code_take_listing(code, text, strlen(text));
}

/* The bits of an instruction that sets or waits for scoreboard 0 or 1. */
enum { NONE = 7 << 5 | 7 << 8, GIVES_0 = 0 << 5 | 7 << 8, READS_0 = 7 << 5 | 0 << 8, WAITS_0 = NONE | 1 << 11 };

typedef struct made_up {
    uint32_t control;
    const char *text;
} made_up;

/* Check waits of instructions that are made up, in the place of a function's; the rest of it becomes NOP. */
static void check_made_up(const made_up *instructions, size_t count, const char *expected)
{
    kprof_code code;
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm90.cubin", &size);
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    const kprof_code_function *function = find_function(&code, "lengths");
    KPROF_AUTO(kprof_strbuf) listing = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&listing, ".text.lengths:\n");
    for (size_t i = 0; i < function->count; i++) {
        function->instructions[i].control = i < count ? instructions[i].control : NONE;
        if (i == 4)
            kprof_strbuf_puts(&listing, ".L_x_4:\n");
        kprof_strbuf_printf(&listing, "        /*%04zx*/ %s ;\n", i * KPROF_CODE_INSTRUCTION_BYTES,
                            i < count ? instructions[i].text : "NOP");
    }
    kprof_code_take_listing(&code, listing.data, listing.length);
    check_waits(&code, "lengths", expected);
    kprof_code_free(&code);
}

/* The line of an instruction of "lengths" with calls in it: from `first` and `second`, if it is not 0, to 0x90, which
 * is in the row of line 13, and from there to 0xc0. */
static uint32_t line_with_calls(uint64_t first, uint64_t second, uint64_t offset)
{
    kprof_code code;
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm90.cubin", &size);
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    const kprof_code_function *function = find_function(&code, "lengths");
    KPROF_AUTO(kprof_strbuf) listing = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&listing, ".text.lengths:\n");
    for (uint64_t at = 0; at < function->bytes; at += KPROF_CODE_INSTRUCTION_BYTES) {
        const bool calls = at == first || (second && at == second);
        kprof_strbuf_puts(&listing, at == 0x90 ? "$division:\n" : at == 0xc0 ? "$root:\n" : "");
        kprof_strbuf_printf(&listing, "        /*%04llx*/ %s ;\n", (unsigned long long)at,
                            calls        ? "CALL.REL.NOINC `($division)"
                            : at == 0xa0 ? "CALL.REL.NOINC `($root)"
                                         : "NOP");
    }
    kprof_code_take_listing(&code, listing.data, listing.length);
    const kprof_code_instruction *own = &function->instructions[offset / KPROF_CODE_INSTRUCTION_BYTES];
    const uint32_t line = code.frames[own->first_frame].line;
    kprof_code_free(&code);
    return line;
}

/* A division has no row in the line table: it is of the line that calls it, and not of the one that stands before it.
 */
TEST(parts_have_the_line_that_calls_them)
{
    assert_int_equal(line_with_calls(0x20, 0, 0x90), 11);
    assert_int_equal(line_with_calls(0x20, 0x30, 0xb0), 11);
    assert_int_equal(line_with_calls(0x20, 0, 0xc0), 11); /* called from there */
    assert_int_equal(line_with_calls(0x20, 0, 0x80), 13);
    assert_int_equal(line_with_calls(0x20, 0, 0x130), 13);   /* a row begins */
    assert_int_equal(line_with_calls(0x20, 0x50, 0x90), 13); /* of two lines */
}

/* The second load sets the scoreboard, too, and gives nothing that is used. */
TEST(both_results_of_a_texture_are_waited_for)
{
    static const made_up first[] = {{GIVES_0, "TEX.LL R12, R2, R20, R22, UR4, 0x0, 2D, 0xf"},
                                    {GIVES_0, "LDG.E R30, desc[UR4][R24.64]"},
                                    {WAITS_0, "FADD R0, R13, R1"},
                                    {NONE, "EXIT"}};
    static const made_up second[] = {{GIVES_0, "TEX.LL RZ, R2, R20, R22, UR4, 0x0, 2D, 0x1"},
                                     {GIVES_0, "LDG.E R30, desc[UR4][R24.64]"},
                                     {WAITS_0, "FADD R0, R2, R1"},
                                     {NONE, "EXIT"}};
    check_made_up(first, 4, "20 0\n");
    check_made_up(second, 4, "20 0\n");
}

/* A load on either way, each with its predicate, and a value by another scoreboard; what only sets the same scoreboard
 * is none of them, nor is what an earlier instruction has waited for. */
TEST(values_of_several_ways_are_waited_for)
{
    enum { GIVES_1 = 1 << 5 | 7 << 8, WAITS_BOTH = NONE | 3 << 11 };
    static const made_up ways[] = {{GIVES_0, "LDG.E R4, desc[UR4][R6.64]"},
                                   {NONE, "@P0 BRA `(.L_x_4)"},
                                   {GIVES_0, "@!P1 LDG.E.64 R4, desc[UR4][R8.64]"},
                                   {GIVES_0, "LDG.E R20, desc[UR4][R10.64]"},
                                   {GIVES_1, "S2UR UR8, SR_CTAID.X"},
                                   {WAITS_BOTH, "@P2 FFMA R0, R4, UR8, R1"},
                                   {GIVES_0, "LDS R4, [UR8]"},
                                   {WAITS_0, "FADD R0, R0, R4"},
                                   {NONE, "EXIT"}};
    /* The store reads R2 until its scoreboard says that it has. */
    static const made_up store[] = {{READS_0, "STG.E desc[UR4][R6.64], R2"},
                                    {READS_0, "STG.E desc[UR4][R6.64+0x4], R12"},
                                    {WAITS_0, "MOV R2, RZ"},
                                    {NONE, "EXIT"}};
    check_made_up(ways, 9, "50 0 20 40\n70 60\n");
    check_made_up(store, 4, "20 0\n");
}

TEST(bulk_copies_are_waited_for_at_barriers)
{
    made_up loop[] = {{NONE, "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0"},
                      {NONE, "UBLKCP.S.G [UR22], [UR20], UR24"},
                      {NONE, "UTMALDG.2D [UR8], [UR10]"},
                      {NONE, "LDGSTS.E [R3], [R6.64]"},
                      {GIVES_0, "SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR4], RZ"},
                      {WAITS_0, "@!P2 BRA `(.L_x_4)"},
                      {NONE, "NOP"},
                      {NONE, "EXIT"}};
    check_made_up(loop, 8, "50 10 20\n");
    loop[6].text = "ARRIVES.LDGSTSBAR.64.ARVCNT [UR4]";
    check_made_up(loop, 8, "50 10 20 30\n");
    /* A thread may be what is waited for: the question alone is known. */
    loop[6].text = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ";
    check_made_up(loop, 8, "50 40\n");
}

/* They end in order: the last one of the groups that have to end is waited for, also behind an earlier wait. */
TEST(matrices_are_waited_for_in_groups)
{
    static const made_up two[] = {{NONE, "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT"},
                                  {NONE, "HGMMA.64x8x16.F32 R24, gdesc[UR8], R24, gsb0"},
                                  {NONE, "QGMMA.64x8x32.F32.E4M3.E4M3 R88, R16, gdesc[UR12], R88, gsb0"},
                                  {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x1"},
                                  {NONE, "FADD R0, R24, R25"},
                                  {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x0"},
                                  {NONE, "EXIT"}};
    static const made_up alone[] = {{NONE, "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT"},
                                    {NONE, "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0"}, /* ends the group */
                                    {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x0"},
                                    {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x1"}, /* there is no other group */
                                    {NONE, "EXIT"}};
    static const made_up loop[] = {{NONE, "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0"},
                                   {NONE, "NOP"},
                                   {NONE, "NOP"},
                                   {NONE, "NOP"},
                                   {NONE, "HGMMA.64x8x16.F32 R32, gdesc[UR4], RZ, !UPT, gsb0"},
                                   {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x1"},
                                   {NONE, "@P0 BRA `(.L_x_4)"},
                                   {NONE, "EXIT"}};
    static const made_up called[] = {{NONE, "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0"},
                                     {NONE, "CALL.REL.NOINC `(_Z4stepv)"},
                                     {NONE, "WARPGROUP.DEPBAR.LE gsb0, 0x0"},
                                     {NONE, "EXIT"}};
    check_made_up(two, 7, "30 0 10\n50 20\n");
    check_made_up(alone, 5, "20 0\n");
    check_made_up(loop, 8, "50 0 40\n");
    check_made_up(called, 4, "");
}

TEST(bulk_stores_are_waited_for_in_groups)
{
    static const made_up stores[] = {{NONE, "UTMASTG.2D [UR8], [UR4]"},
                                     {READS_0, "UTMACMDFLUSH"},
                                     {NONE, "UBLKCP.G.S [UR20], [UR22], UR24"},
                                     {READS_0, "UTMACMDFLUSH"},
                                     {NONE, "DEPBAR.LE SB0, 0x1"},
                                     {NONE, "NOP"},
                                     {NONE, "EXIT"}};
    check_made_up(stores, 7, "40 0\n");
}

/* As at the end of a loop: what an earlier wait let go on is waited for by a later one. */
TEST(groups_are_waited_for_behind_an_earlier_wait)
{
    made_up copies[] = {{NONE, "LDGSTS.E [R3], [R6.64]"},
                        {GIVES_0, "LDGDEPBAR"},
                        {NONE, "LDGSTS.E [R3+0x100], [R6.64+0x100]"},
                        {GIVES_0, "LDGDEPBAR"},
                        {NONE, "DEPBAR.LE SB0, 0x1"},
                        {NONE, "LDS R4, [R3]"},
                        {NONE, "DEPBAR.LE SB0, 0x0"},
                        {NONE, "EXIT"}};
    check_made_up(copies, 8, "40 0\n60 20\n");
    copies[0].text = copies[2].text = "UTMASTG.2D [UR8], [UR4]";
    copies[1] = copies[3] = (made_up){READS_0, "UTMACMDFLUSH"};
    check_made_up(copies, 8, "40 0\n60 20\n");
}

/* Newer ones print scoreboards, too. */
TEST(notes_behind_operands_are_left_out)
{
    kprof_code code;
    take("lengths_sm90.cubin",
         ".text.lengths:\n"
         "        /*0000*/                   LDC R1, c[0x0][0x37c]                &wr=0x0          ?trans1;\n"
         "        /*0010*/              @P0  EXIT                         &req={1,0}  ?WAIT5_END_GROUP;\n"
         "        /*0020*/                   BRX R2 -0x20 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*) ;\n",
         &code);
    check_text(&code, "lengths", 0, "LDC R1, c[0x0][0x37c]");
    check_text(&code, "lengths", 0x10, "@P0  EXIT");
    check_text(&code, "lengths", 0x20, "BRX R2 -0x20");
    assert_null(find_function(&code, "lengths")->instructions[3].text);
    assert_int_equal(code.wait_count, 0); /* the rest of the function is not known */
    kprof_code_free(&code);
}

/* nvdisasm may print all of a cubin of which few functions are wanted. */
TEST(other_sections_are_passed_over)
{
    kprof_code code;
    take("lengths_sm90.cubin",
         ".text.a_stranger:\n"
         "        /*0000*/                   NOP ;\n"
         ".text.doublee:\n"
         "        /*0000*/                   NOP ;\n"
         ".text.lengths:\n"
         "        /*0000*/                   EXIT ;\n"
         ".text.doubled:\n"
         "        /*0000*/                   RET ;\n",
         &code);
    check_text(&code, "lengths", 0, "EXIT");
    check_text(&code, "doubled", 0, "RET");
    kprof_code_free(&code);
}

TEST(listings_of_other_code_give_nothing)
{
    static const char broken[] = ".text.lengths:\n"
                                 "        /*0008*/ NOP ;\n"
                                 "        /*zz*/ NOP;\n"
                                 "        /*0010 NOP;\n"
                                 " /*99999999999999999999*/ NOP;\n";
    static const char empty[] = ".text.lengths:\n"
                                "        /*0000*/ ;\n"
                                "        /*0010*/\n"
                                "/*";
    static const char *const listings[] = {
        "",     "\n\n", ".text.lengths:", ".text.nonesuch:\n /*0000*/ NOP ;\n", " /*0000*/ NOP ;\n", ".text.:\n:\n",
        broken, empty};
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
        kprof_code code;
        take("lengths_sm90.cubin", listings[i], &code);
        for (size_t j = 0; j < code.function_count; j++)
            for (size_t k = 0; k < code.functions[j].count; k++)
                assert_null(code.functions[j].instructions[k].text);
        kprof_code_free(&code);
    }
}

TEST(cut_listings_are_survived)
{
    size_t size, cubin_size;
    char *bytes = read_fixture("loop.cubin", &cubin_size), *text = read_fixture("loop.sass", &size);
    for (size_t length = 0; length < size; length += 97) {
        kprof_code code;
        assert_int_equal(kprof_code_read(bytes, cubin_size, NULL, &code), KPROF_OK);
        char *shorter = malloc(length + 1);
        assert_non_null(shorter);
        memcpy(shorter, text, length);
        shorter[length] = '\0';
        kprof_code_take_listing(&code, shorter, length);
        free(shorter);
        kprof_code_free(&code);
    }
    free(bytes);
    free(text);
}
