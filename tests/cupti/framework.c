/* Stands in for a framework that is linked with its own copy of CUPTI. */
#include <cupti.h>

#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

int call_cupti(int which, void *handle);

/* The result of the function of that place in a list, 0 behind its end. */
EXPORTED int call_cupti(int which, void *handle)
{
    CUpti_SubscriberHandle out;
    uint32_t enable;
    volatile int result = 0; /* so that no call is the last that this function does */
    switch (which) {
    case 0:
        result = cuptiSubscribe(&out, NULL, handle);
        break;
    case 1:
        result = cuptiUnsubscribe(handle);
        break;
    case 2:
        result = cuptiGetCallbackState(&enable, handle, CUPTI_CB_DOMAIN_RESOURCE, 4);
        break;
    case 3:
        result = cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RESOURCE, 4);
        break;
    case 4:
        result = cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RESOURCE);
        break;
    case 5:
        result = cuptiEnableAllDomains(1, handle);
        break;
    case 6:
        result = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
        break;
    case 7:
        result = cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
        break;
    case 8:
        result = cuptiFinalize();
        break;
    default:
        break;
    }
    return result;
}
