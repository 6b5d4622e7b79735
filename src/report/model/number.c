/* Formats millions of numbers: printf is several times slower and follows the locale of whoever embeds us. */
#include "report/model/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIGNIFICANT_DIGITS 15

size_t kprof_number_integer(char *out, int64_t value)
{
    char digits[24];
    size_t count = 0, length = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        out[length++] = '-';
    while (count)
        out[length++] = digits[--count];
    out[length] = '\0';
    return length;
}

size_t kprof_number_general(char *out, double value, int digits)
{
    int length = snprintf(out, KPROF_NUMBER_SIZE, "%.*g", digits, value);
    /* The process may have set a locale with a decimal comma. */
    for (char *c = out; *c; c++)
        if (*c == ',')
            *c = '.';
    return length > 0 ? (size_t)length : 0;
}

static size_t format_special(char *out, double value)
{
    const char *text = isnan(value) ? "" : value < 0 ? "-inf" : "inf";
    size_t length = strlen(text);
    memcpy(out, text, length + 1);
    return length;
}

/* Powers of ten that a double holds exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10,
                                1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21};

/* The error of a * b as computed: Dekker's product (Numerische Mathematik 18, 1971), exact without wider types, which
 * differ between machines. */
static double product_error(double a, double b, double product)
{
    const double splitter = 134217729; /* 2^27 + 1 */
    double a_high = a * splitter - (a * splitter - a), a_low = a - a_high;
    double b_high = b * splitter - (b * splitter - b), b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

/* value * 10^decimals, below 2^63, to the nearest whole number. */
static int64_t scale(double value, unsigned decimals)
{
    double product = value * powers[decimals];
    double whole = floor(product);
    double rest = (product - whole) + product_error(value, powers[decimals], product);
    return (int64_t)whole + (rest >= 0.5) - (rest < -0.5);
}

/* Write `scaled` / 10^decimals without trailing zeros. */
static size_t put_decimal(char *out, int64_t scaled, unsigned decimals)
{
    while (decimals > 0 && scaled % 10 == 0) {
        scaled /= 10;
        decimals--;
    }
    char digits[KPROF_NUMBER_SIZE];
    size_t count = kprof_number_integer(digits, scaled);
    size_t length = 0;
    if (count <= decimals) {
        out[length++] = '0';
        out[length++] = '.';
        for (size_t zeros = decimals - count; zeros > 0; zeros--)
            out[length++] = '0';
        memcpy(out + length, digits, count + 1);
        return length + count;
    }
    size_t whole = count - decimals;
    memcpy(out, digits, whole);
    length = whole;
    if (decimals)
        out[length++] = '.';
    memcpy(out + length, digits + whole, decimals);
    out[length + decimals] = '\0';
    return length + decimals;
}

size_t kprof_number_exact(char *out, double value)
{
    if (!isfinite(value))
        return format_special(out, value);
    double size = fabs(value);
    if (size < 1e15 && value == (double)(int64_t)value)
        return kprof_number_integer(out, (int64_t)value);
    if (size < 1e-4 || size >= 1e15)
        return kprof_number_general(out, value, SIGNIFICANT_DIGITS);
    unsigned whole_digits = 0;
    while (size >= powers[whole_digits])
        whole_digits++;
    unsigned decimals = SIGNIFICANT_DIGITS - whole_digits;
    /* A value below 0.1 has leading zeros that are not significant. */
    for (double limit = 0.1; whole_digits == 0 && size < limit; limit /= 10)
        decimals++;
    int64_t scaled = scale(size, decimals);
    size_t sign = value < 0;
    if (sign)
        out[0] = '-';
    return sign + put_decimal(out + sign, scaled, decimals);
}

/* Copy the digits of a whole number with a comma before every third from the right. */
static size_t group_digits(char *out, const char *digits, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            out[length++] = ',';
        out[length++] = digits[i];
    }
    return length;
}

size_t kprof_number_integer_grouped(char *out, int64_t value)
{
    char digits[KPROF_NUMBER_SIZE];
    const size_t count = kprof_number_integer(digits, value), sign = value < 0;
    out[0] = '-';
    const size_t length = sign + group_digits(out + sign, digits + sign, count - sign);
    out[length] = '\0';
    return length;
}

size_t kprof_number_grouped(char *out, double value, kprof_number_style style)
{
    double size = fabs(value);
    if (!isfinite(value) || size >= 9e17)
        return isfinite(value) ? kprof_number_general(out, value, SIGNIFICANT_DIGITS) : format_special(out, value);
    int is_whole = size == floor(size);
    unsigned decimals = is_whole && !style.fixed ? 0 : style.decimals <= 6 ? style.decimals : 6;
    while (decimals > 0 && size * powers[decimals] >= 9e15) /* a double has no more digits */
        decimals--;
    int64_t scaled = scale(size, decimals);
    const int64_t unit = (int64_t)powers[decimals];
    char digits[KPROF_NUMBER_SIZE];
    size_t length = 0;
    if (value < 0 && scaled > 0)
        out[length++] = '-';
    length += style.plain ? kprof_number_integer(out + length, scaled / unit)
                          : group_digits(out + length, digits, kprof_number_integer(digits, scaled / unit));
    if (decimals) {
        size_t count = kprof_number_integer(digits, scaled % unit);
        out[length++] = '.';
        for (size_t zeros = decimals - count; zeros > 0; zeros--)
            out[length++] = '0';
        memcpy(out + length, digits, count);
        length += count;
    }
    out[length] = '\0';
    return length;
}
