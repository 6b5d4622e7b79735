/* Attributes of a GPU, from cuDeviceGetAttribute, that kprof itself does not need. A row makes a metric,
 * device__attribute_NAME, whose value a launch has if --metrics or a section asks for it. fields.h has the attributes
 * that every launch has. X(name, the end of the driver's name, unit, help). */
#pragma once

#define KPROF_DEVICE_ATTRIBUTES(X)                                                                                     \
    X(max_threads_per_block, MAX_THREADS_PER_BLOCK, "thread/block", "most threads of a block")                         \
    X(max_block_dim_x, MAX_BLOCK_DIM_X, "thread", "most threads of a block in x")                                      \
    X(max_block_dim_y, MAX_BLOCK_DIM_Y, "thread", "most threads of a block in y")                                      \
    X(max_block_dim_z, MAX_BLOCK_DIM_Z, "thread", "most threads of a block in z")                                      \
    X(max_grid_dim_x, MAX_GRID_DIM_X, "block", "most blocks of a grid in x")                                           \
    X(max_grid_dim_y, MAX_GRID_DIM_Y, "block", "most blocks of a grid in y")                                           \
    X(max_grid_dim_z, MAX_GRID_DIM_Z, "block", "most blocks of a grid in z")                                           \
    X(total_constant_memory, TOTAL_CONSTANT_MEMORY, "byte", "constant memory that a kernel's variables can have")      \
    X(max_pitch, MAX_PITCH, "byte", "widest row of a copy of rows")                                                    \
    X(texture_alignment, TEXTURE_ALIGNMENT, "byte", "alignment of textures")                                           \
    X(texture_pitch_alignment, TEXTURE_PITCH_ALIGNMENT, "byte", "alignment of a texture's rows in linear memory")      \
    X(surface_alignment, SURFACE_ALIGNMENT, "byte", "alignment of surfaces")                                           \
    X(gpu_overlap, GPU_OVERLAP, "", "1: copies and kernels can overlap")                                               \
    X(async_engine_count, ASYNC_ENGINE_COUNT, "", "copy engines")                                                      \
    X(kernel_exec_timeout, KERNEL_EXEC_TIMEOUT, "", "1: the time of a kernel is limited")                              \
    X(integrated, INTEGRATED, "", "1: the GPU shares the host's memory")                                               \
    X(can_map_host_memory, CAN_MAP_HOST_MEMORY, "", "1: host memory can be mapped")                                    \
    X(compute_mode, COMPUTE_MODE, "", "compute mode as CUcomputemode numbers it")                                      \
    X(concurrent_kernels, CONCURRENT_KERNELS, "", "1: kernels can run at the same time")                               \
    X(ecc_enabled, ECC_ENABLED, "", "1: memory has error correction")                                                  \
    X(pci_bus_id, PCI_BUS_ID, "", "number of the PCI bus")                                                             \
    X(pci_device_id, PCI_DEVICE_ID, "", "number of the device on the PCI bus")                                         \
    X(pci_domain_id, PCI_DOMAIN_ID, "", "number of the PCI domain")                                                    \
    X(gpu_pci_device_id, GPU_PCI_DEVICE_ID, "", "PCI device and vendor")                                               \
    X(gpu_pci_sub_system_id, GPU_PCI_SUBSYSTEM_ID, "", "PCI subsystem and its vendor")                                 \
    X(tcc_driver, TCC_DRIVER, "", "1: a driver for computing alone, on Windows")                                       \
    X(unified_addressing, UNIFIED_ADDRESSING, "", "1: host and device share one address space")                        \
    X(stream_priorities_supported, STREAM_PRIORITIES_SUPPORTED, "", "1: streams can have priorities")                  \
    X(global_l1_cache_supported, GLOBAL_L1_CACHE_SUPPORTED, "", "1: L1 caches global memory")                          \
    X(local_l1_cache_supported, LOCAL_L1_CACHE_SUPPORTED, "", "1: L1 caches local memory")                             \
    X(managed_memory, MANAGED_MEMORY, "", "1: memory can be managed")                                                  \
    X(multi_gpu_board, MULTI_GPU_BOARD, "", "1: the board has several GPUs")                                           \
    X(multi_gpu_board_group_id, MULTI_GPU_BOARD_GROUP_ID, "", "number that the GPUs of a board share")                 \
    X(host_native_atomic_supported, HOST_NATIVE_ATOMIC_SUPPORTED, "", "1: atomics on host memory work natively")       \
    X(only_partial_host_native_atomic_supported, ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, "",                        \
      "1: some atomics on host memory work natively")                                                                  \
    X(single_to_double_precision_perf_ratio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, "",                                \
      "FP32 operations in the time of one of FP64")                                                                    \
    X(pageable_memory_access, PAGEABLE_MEMORY_ACCESS, "", "1: kernels reach pageable host memory")                     \
    X(pageable_memory_access_uses_host_page_tables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, "",                  \
      "1: by the host's page tables")                                                                                  \
    X(concurrent_managed_access, CONCURRENT_MANAGED_ACCESS, "", "1: host and device can reach managed memory at once") \
    X(direct_managed_mem_access_from_host, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, "",                                    \
      "1: the host reaches managed memory where it is")                                                                \
    X(compute_preemption_supported, COMPUTE_PREEMPTION_SUPPORTED, "", "1: kernels can be preempted")                   \
    X(can_use_host_pointer_for_registered_mem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, "",                            \
      "1: registered memory keeps its address")                                                                        \
    X(can_use_stream_mem_ops_v1, CAN_USE_STREAM_MEM_OPS_V1, "", "1: cuStreamWaitValue32 of version 1 works")           \
    X(can_use_64_bit_stream_mem_ops_v1, CAN_USE_64_BIT_STREAM_MEM_OPS_V1, "",                                          \
      "1: cuStreamWaitValue64 of version 1 works")                                                                     \
    X(can_use_stream_wait_value_nor_v1, CAN_USE_STREAM_WAIT_VALUE_NOR_V1, "",                                          \
      "1: a stream of version 1 can wait for a NOR")                                                                   \
    X(can_use_64_bit_stream_mem_ops, CAN_USE_64_BIT_STREAM_MEM_OPS, "", "1: cuStreamWaitValue64 works")                \
    X(can_use_stream_wait_value_nor, CAN_USE_STREAM_WAIT_VALUE_NOR, "", "1: a stream can wait for a NOR")              \
    X(cooperative_launch, COOPERATIVE_LAUNCH, "", "1: launches can be cooperative")                                    \
    X(cooperative_multi_device_launch, COOPERATIVE_MULTI_DEVICE_LAUNCH, "", "1: so can launches on several devices")   \
    X(can_flush_remote_writes, CAN_FLUSH_REMOTE_WRITES, "", "1: a stream can flush what others wrote to its GPU")      \
    X(host_register_supported, HOST_REGISTER_SUPPORTED, "", "1: host memory can be registered")                        \
    X(read_only_host_register_supported, READ_ONLY_HOST_REGISTER_SUPPORTED, "", "1: also for reading alone")           \
    X(virtual_memory_management_supported, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "", "1: cuMemMap and its kin work")    \
    X(virtual_address_management_supported, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "", "1: cuMemMap and its kin work")   \
    X(handle_type_posix_file_descriptor_supported, HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "",                    \
      "1: memory can be shared by descriptors")                                                                        \
    X(handle_type_win32_handle_supported, HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, "",                                      \
      "1: memory can be shared by handles of Windows")                                                                 \
    X(handle_type_win32_kmt_handle_supported, HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, "",                              \
      "1: and by handles of its kernel")                                                                               \
    X(handle_type_fabric_supported, HANDLE_TYPE_FABRIC_SUPPORTED, "", "1: memory can be shared over a fabric")         \
    X(generic_compression_supported, GENERIC_COMPRESSION_SUPPORTED, "", "1: memory can be compressed")                 \
    X(max_persisting_l2_cache_size, MAX_PERSISTING_L2_CACHE_SIZE, "byte",                                              \
      "most of L2 that can be set aside for data to stay")                                                             \
    X(max_access_policy_window_size, MAX_ACCESS_POLICY_WINDOW_SIZE, "byte", "largest window of an access policy")      \
    X(gpu_direct_rdma_supported, GPU_DIRECT_RDMA_SUPPORTED, "", "1: other devices can reach the GPU's memory")         \
    X(gpu_direct_rdma_with_cuda_vmm_supported, GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "",                            \
      "1: also what cuMemMap maps")                                                                                    \
    X(gpu_direct_rdma_flush_writes_options, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, "",                                  \
      "how their writes are flushed: CUflushGPUDirectRDMAWritesOptions")                                               \
    X(gpu_direct_rdma_writes_ordering, GPU_DIRECT_RDMA_WRITES_ORDERING, "",                                            \
      "who sees their writes in order: CUGPUDirectRDMAWritesOrdering")                                                 \
    X(dma_buf_supported, DMA_BUF_SUPPORTED, "", "1: memory can be shared by dma_buf")                                  \
    X(host_alloc_dma_buf_supported, HOST_ALLOC_DMA_BUF_SUPPORTED, "", "1: so can host memory of cuMemHostAlloc")       \
    X(sparse_cuda_array_supported, SPARSE_CUDA_ARRAY_SUPPORTED, "", "1: arrays can be sparse")                         \
    X(deferred_mapping_cuda_array_supported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, "",                                \
      "1: arrays can be mapped later")                                                                                 \
    X(timeline_semaphore_interop_supported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, "",                                  \
      "1: timeline semaphores can be imported")                                                                        \
    X(memory_pools_supported, MEMORY_POOLS_SUPPORTED, "", "1: cuMemAllocAsync works")                                  \
    X(mempool_supported_handle_types, MEMPOOL_SUPPORTED_HANDLE_TYPES, "",                                              \
      "handles that share memory of pools: CUmemAllocationHandleType")                                                 \
    X(cluster_launch, CLUSTER_LAUNCH, "", "1: launches can have clusters")                                             \
    X(ipc_event_supported, IPC_EVENT_SUPPORTED, "", "1: processes can share events")                                   \
    X(mem_sync_domain_count, MEM_SYNC_DOMAIN_COUNT, "", "domains of memory order")                                     \
    X(tensor_map_access_supported, TENSOR_MAP_ACCESS_SUPPORTED, "", "1: the TMA can be used")                          \
    X(unified_function_pointers, UNIFIED_FUNCTION_POINTERS, "", "1: pointers to functions hold on all devices")        \
    X(numa_config, NUMA_CONFIG, "", "whether the GPU's memory is a NUMA node: CUdeviceNumaConfig")                     \
    X(numa_id, NUMA_ID, "", "NUMA node of the GPU's memory")                                                           \
    X(host_numa_id, HOST_NUMA_ID, "", "NUMA node of the host that is closest; -1: none")                               \
    X(multicast_supported, MULTICAST_SUPPORTED, "", "1: GPUs can write to several at once")                            \
    X(mps_enabled, MPS_ENABLED, "", "1: contexts are made through MPS")                                                \
    X(d3d12_cig_supported, D3D12_CIG_SUPPORTED, "", "1: kernels can run within Direct3D's queue")                      \
    X(vulkan_cig_supported, VULKAN_CIG_SUPPORTED, "", "1: kernels can run within Vulkan's queue")                      \
    X(mem_decompress_algorithm_mask, MEM_DECOMPRESS_ALGORITHM_MASK, "",                                                \
      "algorithms that decompress: CUmemDecompressAlgorithm")                                                          \
    X(mem_decompress_maximum_length, MEM_DECOMPRESS_MAXIMUM_LENGTH, "byte", "most that one operation decompresses")    \
    X(host_numa_virtual_memory_management_supported, HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "",                \
      "1: cuMemMap places memory on the host's NUMA nodes")                                                            \
    X(host_numa_memory_pools_supported, HOST_NUMA_MEMORY_POOLS_SUPPORTED, "",                                          \
      "1: pools place memory on the host's NUMA nodes")                                                                \
    X(host_numa_multinode_ipc_supported, HOST_NUMA_MULTINODE_IPC_SUPPORTED, "",                                        \
      "1: hosts share such memory over a fabric")                                                                      \
    X(host_memory_pools_supported, HOST_MEMORY_POOLS_SUPPORTED, "", "1: pools can hold host memory")                   \
    X(host_virtual_memory_management_supported, HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "",                          \
      "1: cuMemMap can map host memory")                                                                               \
    X(can_tex2d_gather, CAN_TEX2D_GATHER, "", "1: textures of two dimensions can be gathered from")                    \
    X(maximum_texture1d_width, MAXIMUM_TEXTURE1D_WIDTH, "", "greatest width of a 1D texture")                          \
    X(maximum_texture2d_width, MAXIMUM_TEXTURE2D_WIDTH, "", "greatest width of a 2D texture")                          \
    X(maximum_texture2d_height, MAXIMUM_TEXTURE2D_HEIGHT, "", "greatest height of a 2D texture")                       \
    X(maximum_texture3d_width, MAXIMUM_TEXTURE3D_WIDTH, "", "greatest width of a 3D texture")                          \
    X(maximum_texture3d_height, MAXIMUM_TEXTURE3D_HEIGHT, "", "greatest height of a 3D texture")                       \
    X(maximum_texture3d_depth, MAXIMUM_TEXTURE3D_DEPTH, "", "greatest depth of a 3D texture")                          \
    X(maximum_texture2d_layered_width, MAXIMUM_TEXTURE2D_LAYERED_WIDTH, "", "greatest width of a layered 2D texture")  \
    X(maximum_texture2d_layered_height, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, "",                                          \
      "greatest height of a layered 2D texture")                                                                       \
    X(maximum_texture2d_layered_layers, MAXIMUM_TEXTURE2D_LAYERED_LAYERS, "", "most layers of a layered 2D texture")   \
    X(maximum_texture1d_layered_width, MAXIMUM_TEXTURE1D_LAYERED_WIDTH, "", "greatest width of a layered 1D texture")  \
    X(maximum_texture1d_layered_layers, MAXIMUM_TEXTURE1D_LAYERED_LAYERS, "", "most layers of a layered 1D texture")   \
    X(maximum_texture2d_gather_width, MAXIMUM_TEXTURE2D_GATHER_WIDTH, "", "greatest width of a gathered 2D texture")   \
    X(maximum_texture2d_gather_height, MAXIMUM_TEXTURE2D_GATHER_HEIGHT, "",                                            \
      "greatest height of a gathered 2D texture")                                                                      \
    X(maximum_texture3d_width_alternate, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, "",                                        \
      "greatest width of a 3D texture of the other shape")                                                             \
    X(maximum_texture3d_height_alternate, MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, "",                                      \
      "greatest height of a 3D texture of the other shape")                                                            \
    X(maximum_texture3d_depth_alternate, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, "",                                        \
      "greatest depth of a 3D texture of the other shape")                                                             \
    X(maximum_texturecubemap_width, MAXIMUM_TEXTURECUBEMAP_WIDTH, "", "greatest width of a cube map texture")          \
    X(maximum_texturecubemap_layered_width, MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, "",                                  \
      "greatest width of a layered cube map texture")                                                                  \
    X(maximum_texturecubemap_layered_layers, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, "",                                \
      "most layers of a layered cube map texture")                                                                     \
    X(maximum_surface1d_width, MAXIMUM_SURFACE1D_WIDTH, "", "greatest width of a 1D surface")                          \
    X(maximum_surface2d_width, MAXIMUM_SURFACE2D_WIDTH, "", "greatest width of a 2D surface")                          \
    X(maximum_surface2d_height, MAXIMUM_SURFACE2D_HEIGHT, "", "greatest height of a 2D surface")                       \
    X(maximum_surface3d_width, MAXIMUM_SURFACE3D_WIDTH, "", "greatest width of a 3D surface")                          \
    X(maximum_surface3d_height, MAXIMUM_SURFACE3D_HEIGHT, "", "greatest height of a 3D surface")                       \
    X(maximum_surface3d_depth, MAXIMUM_SURFACE3D_DEPTH, "", "greatest depth of a 3D surface")                          \
    X(maximum_surface1d_layered_width, MAXIMUM_SURFACE1D_LAYERED_WIDTH, "", "greatest width of a layered 1D surface")  \
    X(maximum_surface1d_layered_layers, MAXIMUM_SURFACE1D_LAYERED_LAYERS, "", "most layers of a layered 1D surface")   \
    X(maximum_surface2d_layered_width, MAXIMUM_SURFACE2D_LAYERED_WIDTH, "", "greatest width of a layered 2D surface")  \
    X(maximum_surface2d_layered_height, MAXIMUM_SURFACE2D_LAYERED_HEIGHT, "",                                          \
      "greatest height of a layered 2D surface")                                                                       \
    X(maximum_surface2d_layered_layers, MAXIMUM_SURFACE2D_LAYERED_LAYERS, "", "most layers of a layered 2D surface")   \
    X(maximum_surfacecubemap_width, MAXIMUM_SURFACECUBEMAP_WIDTH, "", "greatest width of a cube map surface")          \
    X(maximum_surfacecubemap_layered_width, MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, "",                                  \
      "greatest width of a layered cube map surface")                                                                  \
    X(maximum_surfacecubemap_layered_layers, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, "",                                \
      "most layers of a layered cube map surface")                                                                     \
    X(maximum_texture1d_linear_width, MAXIMUM_TEXTURE1D_LINEAR_WIDTH, "", "greatest width of a linear 1D texture")     \
    X(maximum_texture2d_linear_width, MAXIMUM_TEXTURE2D_LINEAR_WIDTH, "", "greatest width of a linear 2D texture")     \
    X(maximum_texture2d_linear_height, MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, "", "greatest height of a linear 2D texture")  \
    X(maximum_texture2d_linear_pitch, MAXIMUM_TEXTURE2D_LINEAR_PITCH, "byte", "longest row of a linear 2D texture")    \
    X(maximum_texture2d_mipmapped_width, MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, "",                                        \
      "greatest width of a mipmapped 2D texture")                                                                      \
    X(maximum_texture2d_mipmapped_height, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, "",                                      \
      "greatest height of a mipmapped 2D texture")                                                                     \
    X(maximum_texture1d_mipmapped_width, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, "",                                        \
      "greatest width of a mipmapped 1D texture")

#define KPROF_ATTRIBUTE_ONE(...)     +1
#define KPROF_DEVICE_ATTRIBUTE_COUNT (0 KPROF_DEVICE_ATTRIBUTES(KPROF_ATTRIBUTE_ONE))
