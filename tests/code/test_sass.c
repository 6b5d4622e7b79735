/* What texts of instructions say, in the forms that code of several GPUs has. */
#include "code/sass.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static void check_access(const char *text, const char *space, const char *operation, uint32_t bits)
{
    kprof_code_access access = kprof_sass_access(text);
    if (!space) {
        assert_null(access.space);
        assert_null(access.operation);
    } else {
        assert_string_equal(access.space, space);
        assert_string_equal(access.operation, operation);
    }
    assert_int_equal(access.bits, bits);
}

TEST(memory_instructions_tell_what_they_access)
{
    check_access("LDG.E R3, desc[UR4][R2.64]", "Global", "Load", 32);
    check_access("STG.E desc[UR4][R6.64], R9", "Global", "Store", 32);
    check_access("@P1 LDG.E.LTC128B.U16 R17, desc[UR26][R22.64]", "Global", "Load", 16);
    check_access("LDG.E.128.CONSTANT R4, desc[UR4][R4.64]", "Global", "Load", 128);
    check_access("LDG.E.U8.SYS R35, [R50.64+UR4]", "Global", "Load", 8);
    check_access("LDG.E.ENL2.256 R12, R4, desc[UR22][R18.64]", "Global", "Load", 256);
    check_access("LDGSTS.E.BYPASS.LTC128B.128 [R3], [R8.64]", "Global", "Load", 128);
    check_access("@!P1 ATOMG.E.ADD.STRONG.GPU PT, R8, desc[UR12][R26.64], R0", "Global", "Atomic", 32);
    check_access("RED.E.ADD.F64.RN.STRONG.GPU [R10.64], R8", "Global", "Reduction", 64);
    check_access("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR12][R6.64], R9", "Global", "Reduction", 32);
    check_access("ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, RZ, [R4.64], R19", "Generic", "Atomic", 32);
    check_access("LD.E.64 R6, desc[UR12][R12.64]", "Generic", "Load", 64);
    check_access("ST.E [R4.64], R19", "Generic", "Store", 32);
    check_access("LDS.U.128 R4, [R4]", "Shared", "Load", 128);
    check_access("STS.64 [R50.X8+0x440], R32", "Shared", "Store", 64);
    check_access("ATOMS.CAST.SPIN R9, [R5], R8, R9", "Shared", "Atomic", 32);
    check_access("LDSM.16.M88.4 R8, [R13]", "Shared", "Load", 128);
    check_access("LDSM.16.M88 R8, [R13]", "Shared", "Load", 32);
    check_access("LDL R15, [R28]", "Local", "Load", 32);
    check_access("STL.128 [R1+0x10], R4", "Local", "Store", 128);
    check_access("TEX.LL R12, R2, R2, R12, UR4, 0x0, 2D, 0x7", "Texture", "Load", 0);
    check_access("SUST.D.BA.2D.STRONG.SM.TRAP [R18], R12, UR4, 0x0", "Surface", "Store", 0);
    check_access("LDC R1, c[0x0][0x28]", NULL, NULL, 0);
    check_access("LDGDEPBAR", NULL, NULL, 0);
    check_access("REDUX.SUM UR4, R3", NULL, NULL, 0);
    check_access("", NULL, NULL, 0);
    check_access("@", NULL, NULL, 0);
}

/* "R4 R5 UR2 P0", in order. */
static void check_registers(const kprof_sass_registers *set, const char *expected)
{
    static const struct {
        const char *kind;
        size_t first, count;
    } kinds[] = {{"R", 0, 256}, {"UR", 256, 128}, {"P", 384, 8}, {"UP", 392, 8}};
    char found[4096] = "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t j = 0; j < kinds[i].count; j++) {
            size_t bit = kinds[i].first + j;
            if (set->words[bit / 64] >> bit % 64 & 1)
                snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s%zu", *found ? " " : "",
                         kinds[i].kind, j);
        }
    assert_string_equal(found, expected);
}

static void check(const char *text, const char *gives, const char *names)
{
    kprof_sass sass;
    kprof_sass_read(text, &sass);
    check_registers(&sass.gives, gives);
    check_registers(&sass.names, names);
}

TEST(registers_are_as_wide_as_their_values)
{
    check("LDG.E R3, desc[UR4][R2.64] ;", "R3", "R2 R3 UR4 UR5");
    check("LDG.E.128 R8, [R20.64]", "R8 R9 R10 R11", "R8 R9 R10 R11 R20 R21");
    check("LDG.E.SYS R12, [R4]", "R12", "R4 R5 R12");
    check("LDG.E.ENL2.256 R12, R4, desc[UR22][R18.64]", "R4 R5 R6 R7 R12 R13 R14 R15",
          "R4 R5 R6 R7 R12 R13 R14 R15 R18 R19 UR22 UR23");
    check("STS.64 [R23+UR8], R28", "", "R23 R28 R29 UR8");
    check("IMAD.WIDE R2, R9, 0x4, R2", "R2 R3", "R2 R3 R9 R10");
    check("DFMA R2, R4, R6, R8", "R2 R3", "R2 R3 R4 R5 R6 R7 R8 R9");
    check("@!P1 ATOMG.E.ADD.STRONG.GPU PT, R8, desc[UR12][R26.64], R0", "R8", "R0 R8 R26 R27 UR12 UR13 P1");
    check("SHFL.UP P0, R15, R0, 0x1, RZ", "R15 P0", "R0 R15 P0");
    check("ISETP.GE.AND P0, PT, R9, UR4, PT", "P0", "R9 UR4 P0");
    check("IADD3 R4, P0, P1, R2, R3, RZ", "R4 P0 P1", "R2 R3 R4 P0 P1");
    check("S2R R0, SR_TID.X", "R0", "R0");
    check("CS2R R2, SR_CLOCKLO", "R2 R3", "R2 R3");
    check("ULDC.64 UR4, c[0x0][0x208]", "UR4 UR5", "UR4 UR5");
    check("LOP3.LUT R0, R5.reuse, 0xf, RZ, 0xc0, !PT", "R0", "R0 R5");
    check("@P0 BRA `(.L_x_R5)", "", "P0");
    check("CALL.REL.NOINC `($f$R2_P1)", "", "");
    check("HMMA.16816.F32 R4, R8, R12, R4", "R4 R5 R6 R7", "R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15");
    check("TEX.LL R12, R2, R4, R20, UR4, 0x0, 2D, 0x7", "R2 R3 R12 R13",
          "R2 R3 R4 R5 R6 R7 R12 R13 R14 R15 R20 R21 R22 R23 UR4 UR5 UR6 UR7");
    check("TLD.LZ RZ, R4, R8, UR4, 1D", "R4 R5", "R4 R5 R6 R7 R8 R9 R10 R11 UR4 UR5 UR6 UR7");
    check("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x140], R4", "P0", "R4 R5 P0");
    check("LDG.E R0, desc[UR6][R2.U32+UR4]", "R0", "R0 R2 UR4 UR5 UR6 UR7");
    check("LDC.64 R2, c[0x0][R4+0x210]", "R2 R3", "R2 R3 R4");
    check("ULDC.64 UR4, cx[UR6][0x10]", "UR4 UR5", "UR4 UR5 UR6 UR7");
    check("R999 R256, UR200", "", "");
}

TEST(descriptors_are_as_wide_as_ptxas_fills_them)
{
    check("HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", "R24 R25 R26 R27", "R24 R25 R26 R27 UR4 UR5 UR6 UR7");
    /* Where the first matrix is in registers, the other one's descriptor is in the upper half of four. */
    check("QGMMA.64x8x32.F32.E4M3.E4M3 R28, R24, gdesc[UR4], R28, UP0", "R28 R29 R30 R31",
          "R24 R25 R26 R27 R28 R29 R30 R31 UR4 UR5 UR6 UR7 UP0");
    check("UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR4], idesc[UR5], UR12, UP0", "",
          "UR4 UR5 UR6 UR8 UR9 UR10 UR11 UR12 UR13 UR14 UR15 UP0");
    check("@UP1 UTCHMMA.2CTA tmem[UR7], gdesc[UR8], tmem[UR6], tmem[UR4], idesc[UR5], !UPT", "",
          "UR4 UR5 UR6 UR7 UR8 UR9 UP1");
    check("LDTM.x4 R4, tmem[UR4]", "R4 R5 R6 R7", "R4 R5 R6 R7 UR4");
    check("LDTM.16dp256bit.x2 R4, tmem[UR4+0x20]", "R4 R5 R6 R7 R8 R9 R10 R11", "R4 R5 R6 R7 R8 R9 R10 R11 UR4");
    check("STTM.x2 tmem[UR6], R8", "", "R8 R9 UR6");
    check("UTMALDG.2D [UR8], [UR4], desc[UR16]", "", "UR4 UR5 UR8 UR9 UR10 UR11 UR12 UR13 UR14 UR15 UR16 UR17");
    check("UBLKCP.S.G [UR22], [UR20], UR24", "", "UR20 UR21 UR22 UR23 UR24");
    check("UBLKCP.G.S [UR20], [UR22], UR24", "", "UR20 UR21 UR22 UR23 UR24");
    check("UTMACCTL.PF [UR4]", "", "UR4 UR5");
    check("SYNCS.EXCH.64 URZ, [UR4], UR6", "", "UR4 UR6 UR7");
}

TEST(a_group_of_warps_gets_half_a_row_each)
{
    kprof_sass sass;
    kprof_sass_read("HGMMA.64x8x16.F32 R24, R4, gdesc[UR8], R24", &sass);
    check_registers(&sass.gives, "R24 R25 R26 R27");
    kprof_sass_read("HGMMA.64x16x16.F32 R24, gdesc[UR8], !UPT", &sass);
    check_registers(&sass.gives, "R24 R25 R26 R27 R28 R29 R30 R31");
}

static void check_flow(const char *text, kprof_sass_flow flow, bool has_condition, const char *label)
{
    kprof_sass sass;
    kprof_sass_read(text, &sass);
    assert_int_equal(sass.flow, flow);
    assert_int_equal(sass.has_condition, has_condition);
    assert_int_equal(sass.label != NULL, label != NULL);
    if (label)
        assert_memory_equal(sass.label, label, sass.label_length);
}

TEST(jumps_are_told_from_what_goes_on)
{
    check_flow("BRA `(.L_x_5)", KPROF_SASS_JUMP, false, ".L_x_5");
    check_flow("@P0 BRA `(.L_x_5)", KPROF_SASS_JUMP, true, ".L_x_5");
    check_flow("@PT BRA `(.L_x_5)", KPROF_SASS_JUMP, false, ".L_x_5");
    check_flow("@!PT BRA `(.L_x_5)", KPROF_SASS_JUMP, true, ".L_x_5");
    check_flow("BRA P1, `(.L_x_5)", KPROF_SASS_JUMP, true, ".L_x_5");
    check_flow("BRA.DIV UR6, `(.L_x_4)", KPROF_SASS_JUMP, true, ".L_x_4");
    check_flow("BRX R2 -0x6a0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*)", KPROF_SASS_INDIRECT, false, NULL);
    check_flow("EXIT", KPROF_SASS_END, false, NULL);
    check_flow("@!P0 EXIT", KPROF_SASS_END, true, NULL);
    check_flow("RET.REL.NODEC R2 `(doubled)", KPROF_SASS_END, false, "doubled");
    check_flow("CALL.REL.NOINC `($doubled$_Z5twicef)", KPROF_SASS_CALL, false, "$doubled$_Z5twicef");
    check_flow("BSSY B0, `(.L_x_0)", KPROF_SASS_MEETING, false, ".L_x_0");
    check_flow("BSYNC B0", KPROF_SASS_NEXT, false, NULL);
    check_flow("BRA `(.L_x", KPROF_SASS_JUMP, false, NULL);
}

TEST(barriers_of_copies_name_their_scoreboards)
{
    kprof_sass sass;
    kprof_sass_read("DEPBAR.LE SB0, 0x1", &sass);
    assert_int_equal(sass.role, KPROF_SASS_AWAIT);
    assert_int_equal(sass.awaited, 1);
    assert_int_equal(sass.pending, 1);
    kprof_sass_read("DEPBAR.LE SB3, 0x0, {5,4}", &sass);
    assert_int_equal(sass.awaited, 1 << 3 | 1 << 4 | 1 << 5);
    assert_int_equal(sass.pending, 0);
    kprof_sass_read("WARPGROUP.DEPBAR.LE gsb0, 0x0", &sass);
    assert_int_equal(sass.role, KPROF_SASS_AWAIT_MATRIX);
    assert_int_equal(sass.awaited, 0);
}

static void check_role(const char *text, kprof_sass_role role)
{
    kprof_sass sass;
    kprof_sass_read(text, &sass);
    assert_int_equal(sass.role, role);
}

TEST(copies_are_told_by_what_they_tell)
{
    check_role("LDGSTS.E.BYPASS.128 [R7], [R4.64]", KPROF_SASS_COPY);
    check_role("LDGDEPBAR", KPROF_SASS_COPY_GROUP);
    check_role("ARRIVES.LDGSTSBAR.64.ARVCNT [URZ+0x4000]", KPROF_SASS_COPY_ARRIVE);
    check_role("UBLKCP.S.G [UR22], [UR20], UR24", KPROF_SASS_BULK_LOAD);
    check_role("UBLKCP.S.G.MULTICAST [UR22], [UR20], UR24", KPROF_SASS_BULK_LOAD);
    check_role("UBLKCP.G.S [UR20], [UR22], UR24", KPROF_SASS_BULK_STORE);
    check_role("UTMALDG.2D [UR8], [UR4]", KPROF_SASS_BULK_LOAD);
    check_role("UTMASTG.2D [UR8], [UR4]", KPROF_SASS_BULK_STORE);
    check_role("UTMACMDFLUSH", KPROF_SASS_BULK_GROUP);
    check_role("@P6 SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0", KPROF_SASS_PLAIN);
    check_role("SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R5+URZ], RZ", KPROF_SASS_ARRIVE);
    check_role("SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR23], RZ", KPROF_SASS_TEST);
    check_role("SYNCS.EXCH.64 URZ, [UR4], UR6", KPROF_SASS_PLAIN);
}
