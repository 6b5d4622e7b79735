// Small accessors as a library has them: two functions deep, inlined everywhere.
#pragma once

template <typename T, int STRIDE> static __device__ __forceinline__ T fetch_element(const T *base, int i)
{
    return base[(long)i * STRIDE]; // FAULT UncoalescedGlobal walk_columns
}

template <typename T, int STRIDE> static __device__ __forceinline__ T fetch_scaled(const T *base, int i, T factor)
{
    return factor * fetch_element<T, STRIDE>(base, i);
}

// Finds the successor in a linked structure.
static __device__ __forceinline__ int follow(const int *next, int at)
{
    return __ldg(next + at); // SOURCE chase_neighbours
}
