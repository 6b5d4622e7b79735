/* The interfaces of host.h and schedule.h in a build without the CUDA toolkit: every call says so. */
#include "planner/schedule.h"

#include "core/log.h"
#include "planner/limits.h"

static kprof_status unsupported(void)
{
    return kprof_fail(KPROF_UNSUPPORTED,
                      "this build of kprof has no CUDA support: it reads reports but does not know the "
                      "metrics of any chip; build it where the CUDA 13 toolkit is installed");
}

kprof_status kprof_host_chips(kprof_strlist *out)
{
    (void)out;
    return unsupported();
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    (void)chip;
    (void)availability;
    *out = NULL;
    return unsupported();
}

void kprof_host_close(kprof_host *host)
{
    (void)host;
}

const char *kprof_host_chip(const kprof_host *host)
{
    (void)host;
    return "";
}

kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out)
{
    (void)host;
    (void)type;
    (void)out;
    return unsupported();
}

kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    (void)host;
    (void)base;
    (void)out;
    return unsupported();
}

kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    (void)host;
    (void)throughput;
    (void)out;
    return unsupported();
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    (void)host;
    (void)name;
    *out = (kprof_metric_info){0};
    return unsupported();
}

void kprof_metric_info_free(kprof_metric_info *info)
{
    (void)info; /* never filled here */
}

bool kprof_host_has_metric(kprof_host *host, const char *name)
{
    (void)host;
    (void)name;
    return false;
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    (void)host;
    (void)names;
    return unsupported();
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    (void)host;
    (void)name;
    return false;
}

bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out)
{
    (void)question;
    (void)out;
    return false;
}

void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size)
{
    (void)question;
    (void)answer;
    (void)size;
}

kprof_status kprof_host_config_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    (void)host;
    (void)names;
    *out = (kprof_config_image){0};
    return unsupported();
}

kprof_status kprof_host_few_passes_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return kprof_host_config_image(host, names, out);
}

kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return kprof_host_config_image(host, names, out);
}

bool kprof_host_recall_image(const kprof_host_question *question, kprof_config_image *out)
{
    (void)question;
    (void)out;
    return false;
}

void kprof_host_keep_image(const kprof_host_question *question, const kprof_config_image *image)
{
    (void)question;
    (void)image;
}

void kprof_config_image_free(kprof_config_image *image)
{
    (void)image; /* never filled here */
}

kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values)
{
    (void)host;
    (void)counters;
    (void)names;
    (void)values;
    return unsupported();
}

kprof_status kprof_host_image_variants(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                       kprof_image_variants *out)
{
    (void)host;
    (void)names;
    (void)image;
    *out = (kprof_image_variants){0};
    return unsupported();
}

void kprof_image_variants_free(kprof_image_variants *variants)
{
    (void)variants; /* never filled here */
}

kprof_status kprof_schedule_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 kprof_schedule *out)
{
    (void)host;
    (void)names;
    (void)image;
    *out = (kprof_schedule){0};
    return unsupported();
}

void kprof_schedule_free(kprof_schedule *schedule)
{
    (void)schedule; /* never filled here */
}

bool kprof_limits_are_set(const kprof_limits *limits)
{
    return limits->max_passes > 0 || limits->budget_s > 0;
}

kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_strlist *names,
                                kprof_choice_of_names *out)
{
    (void)limits;
    (void)host;
    (void)names;
    *out = (kprof_choice_of_names){0};
    return unsupported();
}

kprof_status kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                    kprof_strlist *out)
{
    (void)host;
    (void)left_out;
    (void)kept;
    (void)out;
    return unsupported();
}
