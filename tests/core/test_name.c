/* Demangling, and the bare function name that -k compares with. */
#include "core/filter.h"
#include "core/strbuf.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct name_case {
    const char *input, *expected;
} name_case;

static void check(char *(*function)(const char *), const name_case *c)
{
    KPROF_AUTO_FREE char *result = function(c->input);
    assert_non_null(result);
    if (strcmp(result, c->expected) != 0)
        print_error("for \"%s\":\n", c->input);
    assert_string_equal(result, c->expected);
}

TEST(symbols_demangle)
{
    static const name_case cases[] = {
        {"_Z9vectorAddPKfS0_Pfi", "vectorAdd(float const*, float const*, float*, int)"},
        {"_Z1kILi4EEvPi", "void k<4>(int*)"},
        {"_ZN12_GLOBAL__N_11kEv", "(anonymous namespace)::k()"},
        {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
        {"_Zgarbage", "_Zgarbage"},
        {"_Z", "_Z"},
        {"i", "i"}, /* a type's code, but not a function's name */
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(kprof_demangle, &cases[i]);
}

TEST(function_names_are_bare)
{
    static const name_case cases[] = {
        {"vectorAdd", "vectorAdd"},
        {"vectorAdd(float const*, int)", "vectorAdd"},
        {"void at::native::vectorized_elementwise_kernel<4, at::F<float>, std::array<char*, 1ul> >(int, at::F<float>)",
         "vectorized_elementwise_kernel"},
        {"void reduce<int, &(op<float>(float)), (N)0>(int*)", "reduce"},
        {"void k<((3)>(2)), (4)<(5)>(int)", "k"},
        {"void k<&X::operator()<int> >(int)", "k"},
        {"void k<(a->b)>(int)", "k"},
        {"std::enable_if<((sizeof (int))>(4)), void>::type ns::k<int>(int)", "k"},
        {"decltype (f(x)) ns::k<int>(int)", "k"},
        {"decltype(f(x)) k<int>(int)", "k"},
        {"decltype_k(int)", "decltype_k"},
        {"CUDAGraph<12 kernels, 3fa2c1>", "CUDAGraph"},
        {"void k<int (*)(int)>(int (*)(int), (anonymous namespace)::X)", "k"},
        {"unsigned long ns::k<int>(int)", "k"},
        {"(anonymous namespace)::k<int>(int)", "k"},
        {"void ns::(anonymous namespace)::k(int)", "k"},
        {"k[abi:cxx11](int)", "k"},
        {"k(int) [clone .part.0]", "k"},
        {"k [clone .part.0]", "k"},
        {"ns::X::~X()", "~X"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(kprof_name_function_base, &cases[i]);
}

TEST(operators_and_lambdas_are_names)
{
    static const name_case cases[] = {
        {"X::operator()(int) const", "operator()"},
        {"void X::operator()<int>(int) const", "operator()"},
        {"X::operator<(X const&)", "operator<"},
        {"void ns::operator< <int>(int)", "operator<"},
        {"ns::operator<<(int)", "operator<<"},
        {"void ns::operator<< <int>(int)", "operator<<"},
        {"ns::operator>>=(int)", "operator>>="},
        {"X::operator->()", "operator->"},
        {"X::operator->*(int)", "operator->*"},
        {"X::operator<=>(int)", "operator<=>"},
        {"X::operator,(int)", "operator,"},
        {"X::operator[](int)", "operator[]"},
        {"operator new[](unsigned long)", "operator new[]"},
        {"X::operator int() const", "operator int"},
        {"X::operator std::vector<void (*)(int)>() const", "operator std::vector<void (*)(int)>"},
        {"operators(int)", "operators"},
        {"operator_k", "operator_k"},
        {"main::{lambda(int)#1}::operator()(int) const", "operator()"},
        {"f(int) const::{lambda(int, X<1>)#2}::operator()<float>(float) const", "operator()"},
        {"f(int)::X<3>::k(float)", "k"},
        {"void launch<f()::{lambda(int)#1}>(f()::{lambda(int)#1})", "launch"},
        {"main::'lambda'(int)::operator()(int) const", "operator()"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(kprof_name_function_base, &cases[i]);
}

TEST(other_compilers_names_work)
{
    static const name_case cases[] = {
        {"triton_poi_fused_add_0d1d2de", "triton_poi_fused_add_0d1d2de"},
        {"cudapy::__main__::add[abi:v1][abi:c8tJT_3d](Array<float, 1, C, mutable, aligned>)", "add"},
        {"cudapy::__main__::add$241(Array<float, 1, C>)", "add$241"},
        {"__device_stub__Z9vectorAddPKfS0_Pfi", "vectorAdd"},
        {"__device_stub__vectorAdd(float*)", "vectorAdd"},
        {"__device_stub__Zap", "Zap"},
        {"__device_stub__", "__device_stub__"},
        {"ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(kprof_name_function_base, &cases[i]);
}

TEST(broken_brackets_do_no_harm)
{
    static const char *const inputs[] = {
        "",
        "<",
        ">",
        "(",
        ")",
        "((",
        "::",
        "a::",
        "k<",
        "k<<<",
        "[[",
        "k(<[{",
        "k)>",
        "operator",
        "operator<",
        "operator(",
        "operator int",
        "a b::<c>",
        "decltype(",
        "{",
        " ",
        "k<a(b>)",
        "k(a)::(b)",
        " operator ",
        "k]}",
        "a:b",
        "(anonymous namespace)",
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char *copy = strdup(inputs[i]);
        char *base = kprof_name_function_base(copy);
        assert_non_null(base);
        assert_true(strlen(base) <= strlen(inputs[i]));
        assert_true(strlen(base) > 0 || inputs[i][0] == '\0');
        free(base);
        free(copy);
    }
}

/* "A<A<..>,A<..>>", each level naming the one before twice: a few hundred characters for 2^30 times as much text. */
TEST(names_that_explode_are_left_alone)
{
    char name[512] = "_Z1f1AIiiE";
    size_t length = strlen(name);
    for (int i = 0; i < 30; i++) {
        char id = (char)(i < 10 ? '0' + i : 'A' + i - 10);
        length += (size_t)snprintf(name + length, sizeof name - length, "S_IS%c_S%c_E", id, id);
    }
    KPROF_AUTO_FREE char *demangled = kprof_demangle(name);
    assert_string_equal(demangled, name);
}

/* "_Z1kIJ" <unit>... "EEvv": a kernel with `count` template arguments. */
static char *name_with_arguments(const char *begin, const char *unit, const char *end, size_t count)
{
    kprof_strbuf name = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&name, begin);
    for (size_t i = 0; i < count; i++)
        kprof_strbuf_puts(&name, unit);
    kprof_strbuf_puts(&name, end);
    return kprof_strbuf_take(&name);
}

/* Names of CUTLASS and Thrust have several thousand characters. */
TEST(long_names_demangle)
{
    for (size_t count = 50; count <= 400; count *= 2) {
        char *mangled =
            name_with_arguments("_Z1kIJ", "50a_type_whose_name_is_as_long_as_those_of_libraries1i", "EEvv", count);
        char *expected =
            name_with_arguments("void k<", "a_type_whose_name_is_as_long_as_those_of_libraries, i, ", "", count);
        strcpy(expected + strlen(expected) - 2, ">()");
        char *demangled = kprof_demangle(mangled);
        char *function = kprof_name_function_base(demangled);
        assert_string_equal(demangled, expected);
        assert_string_equal(function, "k");
        free(mangled);
        free(expected);
        free(demangled);
        free(function);
    }
}

TEST(long_names_that_nest_do_no_harm)
{
    static const char *const units[] = {"P", "F", "N1aI", "N", "J", "Xpp", "Dp", "M1a", "A_", "1aIiE", "DT", "XcvL"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        for (size_t length = 1000; length <= 512000; length *= 8) {
            char *mangled = name_with_arguments("_Z1kI", units[i], "i", length / strlen(units[i]));
            char *demangled = kprof_demangle(mangled);
            assert_non_null(demangled);
            free(mangled);
            free(demangled);
        }
    }
}

TEST(deep_nesting_is_no_recursion)
{
    size_t depth = 1000000;
    KPROF_AUTO_FREE char *name = malloc(depth * 2 + 8);
    assert_non_null(name);
    name[0] = 'k';
    memset(name + 1, '<', depth);
    memset(name + 1 + depth, '>', depth);
    strcpy(name + 1 + depth * 2, "(int)");
    KPROF_AUTO_FREE char *base = kprof_name_function_base(name);
    assert_string_equal(base, "k");
}
