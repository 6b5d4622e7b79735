/* Calls to NVPW's raw counter configuration. */
#include "planner/raw_config.h"

#include "core/log.h"

#include <stdlib.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}

struct kprof_raw_config {
    const kprof_nvperf_api *api;
    NVPW_RawCounterConfig *config;
    NVPW_RawCounterDomain domains[KPROF_RAW_DOMAINS_MAX]; /* all that the chip has */
    size_t domain_count;
    bool is_quiet;
};

static kprof_status fail(const kprof_raw_config *self, const char *operation, NVPA_Status result)
{
    kprof_log(self->is_quiet ? KPROF_LOG_DEBUG : KPROF_LOG_ERROR, "%s: NVPW error %d", operation, (int)result);
    return KPROF_INTERNAL;
}

static kprof_status create(kprof_raw_config *self, const kprof_host *host)
{
    NVPW_InitializeHost_Params init = {.structSize = NVPW_InitializeHost_Params_STRUCT_SIZE};
    NVPA_Status result = self->api->NVPW_InitializeHost(&init);
    PARAMS(NVPW_CUDA_RawCounterConfig_Create_Params, params);
    params.pChipName = host->chip;
    params.pCounterAvailabilityImage = host->availability.image;
    params.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    if (result == NVPA_STATUS_SUCCESS)
        result = self->api->NVPW_CUDA_RawCounterConfig_Create(&params);
    self->config = params.pRawCounterConfig;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(self, "opening the counters of a chip", result);
}

static kprof_status list_domains(kprof_raw_config *self)
{
    PARAMS(NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains_Params, params);
    params.pRawCounterConfig = self->config;
    params.pAvailableDomains = self->domains;
    params.numAvailableDomains = KPROF_RAW_DOMAINS_MAX;
    NVPA_Status result = self->api->NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains(&params);
    self->domain_count = params.numAvailableDomains;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(self, "listing where a chip has counters", result);
}

static kprof_status open_config(const kprof_host *host, bool is_quiet, kprof_raw_config **out)
{
    const kprof_nvperf_api *api;
    *out = NULL;
    kprof_status status = kprof_nvperf_load(&api);
    if (status != KPROF_OK)
        return status;
    kprof_raw_config *self = calloc(1, sizeof(*self));
    if (!self)
        return KPROF_NO_MEMORY;
    self->api = api;
    self->is_quiet = is_quiet;
    status = create(self, host);
    if (status == KPROF_OK)
        status = list_domains(self);
    if (status != KPROF_OK) {
        kprof_raw_config_close(self);
        return status;
    }
    *out = self;
    return KPROF_OK;
}

kprof_status kprof_raw_config_open(const kprof_host *host, kprof_raw_config **out)
{
    return open_config(host, false, out);
}

kprof_status kprof_raw_config_open_quietly(const kprof_host *host, kprof_raw_config **out)
{
    return open_config(host, true, out);
}

void kprof_raw_config_close(kprof_raw_config *config)
{
    if (!config)
        return;
    PARAMS(NVPW_RawCounterConfig_Destroy_Params, params);
    params.pRawCounterConfig = config->config;
    if (config->config)
        (void)config->api->NVPW_RawCounterConfig_Destroy(&params);
    free(config);
}

kprof_status kprof_raw_config_begin(kprof_raw_config *config)
{
    PARAMS(NVPW_RawCounterConfig_BeginPassGroup_Params, params);
    params.pRawCounterConfig = config->config;
    params.pDomains = config->domains;
    params.numDomains = config->domain_count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_BeginPassGroup(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "opening a group of passes", result);
}

kprof_status kprof_raw_config_end(kprof_raw_config *config)
{
    PARAMS(NVPW_RawCounterConfig_EndPassGroup_Params, params);
    params.pRawCounterConfig = config->config;
    params.pDomains = config->domains;
    params.numDomains = config->domain_count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_EndPassGroup(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "closing a group of passes", result);
}

static kprof_status add(kprof_raw_config *config, const NVPW_RawCounterRequest *requests, size_t count)
{
    PARAMS(NVPW_RawCounterConfig_AddRawCounters_Params, params);
    params.pRawCounterConfig = config->config;
    params.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    params.pRawCounterRequests = requests;
    params.numRawCounterRequests = count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AddRawCounters(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "scheduling counters", result);
}

static kprof_status ask(const kprof_raw_config *config, const NVPW_RawCounterRequest *requests, size_t count, bool *out)
{
    PARAMS(NVPW_RawCounterConfig_AreRawCountersSchedulable_Params, params);
    params.pRawCounterConfig = config->config;
    params.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    params.pRawCounterRequests = requests;
    params.numRawCounterRequests = count;
    params.disallowAddingExtraPasses = 1;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AreRawCountersSchedulable(&params);
    *out = result == NVPA_STATUS_SUCCESS && params.schedulable;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "asking whether counters fit", result);
}

static NVPW_RawCounterRequest make_request(const char *counter, uint32_t domain)
{
    return (NVPW_RawCounterRequest){.pRawCounterName = counter, .domain = domain};
}

kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out)
{
    NVPW_RawCounterRequest *requests = calloc(count + 1, sizeof(*requests));
    *out = false;
    if (!requests)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        requests[i] = make_request(counters[i].name, counters[i].domain);
    kprof_status status = ask(config, requests, count, out);
    free(requests);
    return status;
}

kprof_status kprof_raw_config_put(kprof_raw_config *config, const kprof_placed_counter *counter)
{
    NVPW_RawCounterRequest request = make_request(counter->name, counter->domain);
    return add(config, &request, 1);
}

kprof_status kprof_raw_config_put_all(kprof_raw_config *config, const kprof_placed_counters *counters)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < counters->names.count && status == KPROF_OK; i++) {
        kprof_placed_counter one = {counters->names.items[i], counters->domains[i]};
        status = kprof_raw_config_put(config, &one);
    }
    return status;
}

/* Requests for counters, in the domain that NVPW chooses. NULL when out of memory. */
static NVPW_RawCounterRequest *make_requests(const kprof_strlist *counters)
{
    NVPW_RawCounterRequest *requests = calloc(counters->count + 1, sizeof(*requests));
    for (size_t i = 0; requests && i < counters->count; i++)
        requests[i] = make_request(counters->items[i], NVPW_RAW_COUNTER_DOMAIN_INVALID);
    return requests;
}

kprof_status kprof_raw_config_add(kprof_raw_config *config, const kprof_strlist *counters)
{
    NVPW_RawCounterRequest *requests = make_requests(counters);
    kprof_status status = requests ? add(config, requests, counters->count) : KPROF_NO_MEMORY;
    free(requests);
    return status;
}

kprof_status kprof_raw_config_fits(const kprof_raw_config *config, const kprof_strlist *counters, bool *out)
{
    NVPW_RawCounterRequest *requests = make_requests(counters);
    if (!requests)
        return KPROF_NO_MEMORY;
    kprof_status status = ask(config, requests, counters->count, out);
    free(requests);
    return status;
}

static NVPA_Status get_image(const kprof_raw_config *config, kprof_config_image *out)
{
    PARAMS(NVPW_RawCounterConfig_GetConfigImage_Params, params);
    params.pRawCounterConfig = config->config;
    params.bytesAllocated = out->size;
    params.pBuffer = out->data;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GetConfigImage(&params);
    out->size = params.bytesCopied;
    return result;
}

kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config, kprof_config_image *out)
{
    *out = (kprof_config_image){0};
    PARAMS(NVPW_RawCounterConfig_GenerateConfigImage_Params, params);
    params.pRawCounterConfig = config->config;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GenerateConfigImage(&params);
    if (result == NVPA_STATUS_SUCCESS)
        result = get_image(config, out);
    if (result != NVPA_STATUS_SUCCESS)
        return fail(config, "making a config image", result);
    out->data = malloc(out->size ? out->size : 1);
    if (!out->data)
        return KPROF_NO_MEMORY;
    result = get_image(config, out);
    kprof_status status = result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "making a config image", result);
    if (status == KPROF_OK)
        status = kprof_host_count_passes(host, out);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

/* Where a counter can be read: single domains, and groups of them that work together. */
typedef struct listed_places {
    NVPW_RawCounterDomain domains[KPROF_RAW_DOMAINS_MAX];
    uint32_t groups[KPROF_RAW_DOMAINS_MAX];
    size_t domain_count, group_count;
} listed_places;

static kprof_status list_places(const kprof_raw_config *config, const char *counter, listed_places *out)
{
    PARAMS(NVPW_RawCounterConfig_GetRawCounterProperties_Params, params);
    params.pRawCounterConfig = config->config;
    params.pRawCounterName = counter;
    params.pSupportedDomains = out->domains;
    params.numSupportedDomains = KPROF_RAW_DOMAINS_MAX;
    params.pSupportedCdgDomains = out->groups;
    params.numSupportedCdgDomains = KPROF_RAW_DOMAINS_MAX;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GetRawCounterProperties(&params);
    out->domain_count = params.numSupportedDomains;
    out->group_count = params.numSupportedCdgDomains;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "asking where a counter is", result);
}

kprof_status kprof_raw_config_places(const kprof_raw_config *config, const char *counter, kprof_counter_places *out)
{
    listed_places listed;
    kprof_status status = list_places(config, counter, &listed);
    out->count = 0;
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < listed.domain_count && out->count < KPROF_COUNTER_PLACES_MAX; i++)
        out->items[out->count++] = (uint32_t)listed.domains[i];
    for (size_t i = 0; i < listed.group_count && out->count < KPROF_COUNTER_PLACES_MAX; i++)
        out->items[out->count++] = listed.groups[i];
    return KPROF_OK;
}

kprof_status kprof_raw_config_add_traits(const kprof_raw_config *config, const kprof_placed_counter *counter,
                                         kprof_pass_traits *traits)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(config, counter->name, &places);
    bool in_sm_a = places.count > 0;
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        bool may_be_there = counter->domain == 0 || counter->domain == places.items[i];
        traits->in_sm = traits->in_sm || kprof_place_is_in_sm(places.items[i]);
        traits->is_slow = traits->is_slow || (may_be_there && kprof_place_is_slow(places.items[i]));
        traits->is_patch = traits->is_patch || kprof_place_is_patch(places.items[i]);
        in_sm_a = in_sm_a && (!may_be_there || kprof_place_is_in_sm_a(places.items[i]));
    }
    traits->in_sm_a = traits->in_sm_a || in_sm_a;
    return status;
}

bool kprof_place_is_in_sm_a(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A;
}

bool kprof_place_is_slow(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC;
}

bool kprof_place_is_free(uint32_t place, const kprof_pass_traits *pass)
{
    return kprof_place_is_in_sm_a(place) && pass->in_sm_a && (!kprof_place_is_slow(place) || pass->is_slow);
}

bool kprof_place_is_in_l2(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_LTS || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS ||
           place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS_B;
}

bool kprof_place_is_patch(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SASS;
}

bool kprof_place_is_in_sm(uint32_t place)
{
    return place != NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC &&
           (kprof_place_is_in_sm_a(place) || kprof_place_is_slow(place));
}

static NVPA_Status list_counters(const kprof_config_image *image, size_t pass, const char **names, size_t *count)
{
    const kprof_nvperf_api *api;
    if (kprof_nvperf_load(&api) != KPROF_OK)
        return NVPA_STATUS_NOT_LOADED;
    PARAMS(NVPW_Config_GetRawCounters_Params, params);
    params.pConfig = image->data;
    params.configSize = image->size;
    params.passIndex = pass;
    params.ppRawCounterNames = names;
    params.numRawCounters = *count;
    NVPA_Status result = api->NVPW_Config_GetRawCounters(&params);
    *count = params.numRawCounters;
    return result;
}

kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out)
{
    size_t count = 0;
    NVPA_Status result = list_counters(image, pass, NULL, &count);
    const char **names = calloc(count + 1, sizeof(*names));
    if (!names)
        return KPROF_NO_MEMORY;
    if (result == NVPA_STATUS_SUCCESS && count > 0)
        result = list_counters(image, pass, names, &count);
    kprof_status status = KPROF_OK;
    if (result != NVPA_STATUS_SUCCESS)
        status = kprof_fail(KPROF_INTERNAL, "reading a pass of a config image: NVPW error %d", (int)result);
    for (size_t i = 0; i < count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(out, names[i]))
            status = KPROF_NO_MEMORY;
    }
    free(names);
    return status;
}
