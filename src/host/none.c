/* Stands for nvpw.c and load.c in a build without the CUDA toolkit: no question has an answer. */
#include "host/nvpw.h"

#include "core/log.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

kprof_status kprof_ask_open(kprof_host *host)
{
    return kprof_fail(KPROF_UNSUPPORTED, "this build of kprof has no CUDA support: it reads reports but does not know "
                                         "the metrics of any chip; build it where the CUDA 13 toolkit is installed");
}

#define UNSUPPORTED(name)                                                                                              \
    kprof_status name(kprof_host *host, const char *text, kprof_strlist *out)                                          \
    {                                                                                                                  \
        return kprof_ask_open(host);                                                                                   \
    }
UNSUPPORTED(kprof_ask_chips)
UNSUPPORTED(kprof_ask_base_metrics)
UNSUPPORTED(kprof_ask_submetrics)
UNSUPPORTED(kprof_ask_breakdown)
UNSUPPORTED(kprof_ask_info)
UNSUPPORTED(kprof_ask_known)
UNSUPPORTED(kprof_ask_sampled)

void kprof_ask_close(kprof_host *host) {}

bool kprof_ask_takes(kprof_host *host, const char **names, size_t count, bool *certain)
{
    return false;
}

bool kprof_cupti_identify(kprof_strbuf *out)
{
    return false;
}
