// Kernels that take a known time, or none.
#pragma once

// Run for so many nanoseconds of the GPU's clock.
__global__ void spin(unsigned long long ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < ns);
}

__global__ void nothing() {}
