/* Stands in for a framework's copy of CUPTI. Each function returns a number of its own. */
#include <cupti.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
    *out = user;
    return (CUptiResult)101;
}

EXPORTED CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    return subscriber ? (CUptiResult)102 : CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    *enable = id + (uint32_t)domain;
    return subscriber ? (CUptiResult)103 : CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return subscriber ? (CUptiResult)(100 + enable + domain + id) : CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
    return subscriber ? (CUptiResult)(200 + enable + domain) : CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    return subscriber ? (CUptiResult)(300 + enable) : CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return (CUptiResult)(400 + kind);
}

EXPORTED CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return (CUptiResult)(500 + kind);
}

EXPORTED CUptiResult cuptiFinalize(void)
{
    return (CUptiResult)104;
}
