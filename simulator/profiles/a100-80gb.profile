# NVIDIA A100 SXM, 80 GB of HBM2e, behind PCIe 4. docs/cost-model.md says how a profile is written
# and what each figure does. "estimate" marks what nobody published, as far as we know.

name                          NVIDIA A100-SXM4-80GB    | its name to nvidia-smi (DistServe issue 3)
capability                    8.0                      | CUDA C++ Programming Guide, compute capabilities
capacity                      81152MiB                 | 79.25 GiB in PyTorch messages (OOTDiffusion issue 235)
multiprocessors               108                      | NVIDIA A100 architecture paper
memory_bus_bits               5120                     | five stacks of HBM2e, 1024 bits each
l2_cache                      40MiB                    | NVIDIA A100 architecture paper
shared_memory_multiprocessor  164KiB                   | CUDA C++ Programming Guide, capability 8.0
shared_memory_block           163KiB                   | CUDA C++ Programming Guide, capability 8.0
blocks_multiprocessor         32                       | CUDA C++ Programming Guide, capability 8.0
concurrent_kernels            128                      | CUDA C++ Programming Guide, capability 8.0: resident grids
copy_engines                  3                        | asyncEngineCount of A100

# Host time of a call, up to where it submits or waits.
call.cudaLaunchKernel         4.2    5      10.4   us  | NVIDIA forum topic 196616: 5 warm; ryujaehun/pytorch-gpu-benchmark 6, profiled: least 4.2, mean 10.4
call.cudaLaunchHostFunc       4.2    5      10.4   us  | estimate: as a launch
call.cudaMemcpy               3.4    5      10.4   us  | ryujaehun/pytorch-gpu-benchmark 6, profiled: least 3.4; above, estimate: as a launch
call.cudaMemset               3.4    5      10.4   us  | estimate: as cudaMemcpy
call.cudaEventCreate          0.22   0.33   0.78   us  | Harris cuda_event_benchmark, RTX 4090: 0.22 without and 0.33 with timing; V100: 0.78
call.cudaEventDestroy         0.1    0.2    0.78   us  | estimate: at most as cudaEventCreate
call.cudaEventRecord          0.175  0.24   2.5    us  | Harris cuda_event_benchmark: RTX 4090 0.175, V100 0.24 without timing, 2.5 with
call.cudaEventQuery           0.1    0.1    1      us  | Harris cuda_event_benchmark: RTX 4090 0.1, V100 1
call.cudaEventSynchronize     0.5    1      1      us  | estimate: as cudaStreamSynchronize
call.cudaStreamWaitEvent      0.115  0.115  0.26   us  | Harris cuda_event_benchmark: RTX 4090 0.115, V100 0.26
call.cudaStreamCreate         1      5      20     us  | estimate
call.cudaStreamDestroy        1      5      20     us  | estimate
call.cudaStreamSynchronize    0.5    1      1      us  | idle stream, unverified; TornadoVM: context 0.5
call.cudaStreamQuery          0.1    0.1    1      us  | estimate: as cudaEventQuery
call.cudaDeviceSynchronize    0.5    0.5    1      us  | TornadoVM: 0.5
call.cudaMalloc               4.5    50     132    us  | Cytnx PR 850: 14 with launch and free; University of Virginia: 50 up to 512 KB; GB10, CUDA 13: 132 for 1 MB
call.cudaFree                 4.5    30     65     us  | Cytnx PR 850: 14 with launch and malloc; above, estimate (1.1 ms in an ingero trace has the waiting in it)
call.cudaMemGetInfo           6.7    9      12.5   us  | sglang issue 25225: H20 about 9, B300 6.7 to 12.5
call.cudaHostAlloc            100    500    2300   us  | University of Virginia: 2300 up to 1 MB on an old device; below, estimate
call.cudaFreeHost             50     200    1000   us  | estimate
call.cudaHostRegister         100    500    2300   us  | estimate: as cudaHostAlloc
call.cudaHostUnregister       50     200    1000   us  | estimate: as cudaFreeHost
call.cudaMallocAsync          0.7    1      1.4    us  | unverified: 1 where the pool has the memory; cudaMallocAsync and free of 1 GiB under a threshold 1.37
call.cudaFreeAsync            0.7    1      1.4    us  | unverified: as cudaMallocAsync
call.cudaMemPoolCreate        10     50     100    us  | estimate
call.cudaMemPoolDestroy       10     50     100    us  | estimate
call.cudaMemPoolTrimTo        1      5      10     us  | estimate
call.cuMemAddressReserve      2      2      19     us  | vAttention, A100, unverified: 2; bench_vmm, A100: 19 for 8 GB
call.cuMemAddressFree         1      1      1      us  | vAttention, unverified
call.cuMemCreate              7.6    29     193    us  | for 2 MiB. bench_vmm: A100 193, another device 7.6; vAttention, unverified: 29
call.cuMemRelease             23     23     23     us  | vAttention, unverified
call.cuMemMap                 1.05   1.45   2      us  | bench_vmm: A100 1.45, another device 1.05; vAttention, unverified: 2
call.cuMemUnmap               11.5   25.6   34     us  | bench_vmm: A100 25.6, another device 11.5; vAttention, unverified: 34
call.cuMemSetAccess           20.8   36     38     us  | bench_vmm: A100 36, another device 20.8; vAttention, unverified: 38
call.cuMemExportToShareableHandle    5  10  50     us  | estimate
call.cuMemImportFromShareableHandle  5  10  50     us  | estimate
call.cuStreamWriteValue32     0.175  0.24   2.5    us  | estimate: as cudaEventRecord
call.cudaStreamBeginCapture   1      2      10     us  | estimate
call.cudaStreamEndCapture     1      5      20     us  | estimate
call.cudaGraphInstantiate     5      10     50     us  | unverified: 10 and 1 a node
call.cudaGraphUpload          1      2.5    10     us  | estimate: as cudaGraphLaunch
call.cudaGraphLaunch          2      2.5    2.5    us  | NVIDIA blog on constant-time launch, straight lines on Ampere: 2.5 and 0.001 a node (CUDA 12.6), 2 and 0.2 a node (11.8)
call.cublasCreate             1      10     50     ms  | estimate: kernels are loaded
call.cublasDestroy            100    500    2000   us  | estimate
call.cublasGemmEx             5      7      15     us  | estimate: a launch and the choice of a kernel
call.cublasSgemv              5      7      15     us  | estimate: as cublasGemmEx
call.cublasSaxpy              4.2    5      10.4   us  | estimate: as a launch
call.cublasSdot               4.2    5      10.4   us  | estimate: as a launch
call.cublasLtMatmul           5      7      15     us  | estimate: as cublasGemmEx
call.other                    0.25   0.3    0.55   us  | cudaGetDevice, cudaSetDevice in ryujaehun/pytorch-gpu-benchmark 6

# Besides, for each 2 MiB page that the call takes or gives back.
page.cudaMalloc               1      30     111    us  | GB10, CUDA 13: 111 from 16 to 64 MB; 1 GiB in and out of a pool without threshold 31.2 ms, halved; low: estimate
page.cudaFree                 1      30     111    us  | estimate: as cudaMalloc
page.cudaHostAlloc            50     100    229    us  | University of Virginia: 61 ms for 512 MB on an old device; below, estimate
page.cudaMallocAsync          1      30     111    us  | estimate: as cudaMalloc, for what the pool takes from the device
page.cudaGraphUpload          1      30     111    us  | estimate: as cudaMalloc, for what the device's graphs take from it
page.cudaGraphLaunch          1      30     111    us  | estimate: as cudaMalloc, for what the device's graphs take from it
page.cudaMemPoolTrimTo        1      30     111    us  | estimate: as cudaFree, for what a pool gives back, at a host wait too

# Besides, for each node of the graph.
node.cudaGraphInstantiate     0.3    1      3      us  | unverified: 1
node.cudaGraphLaunch          1      1      200    ns  | as call.cudaGraphLaunch

# Device.
launch_latency                2.6    2.6    5      us  | makslevental/persistent_kernel, driver 510: least 2.6; high: estimate
operation_gap                 0.5    1      1.5    us  | unverified: 1.5 between nodes of a graph; below, estimate
graph_node_gap                1      1.5    2      us  | unverified: 1.5; low and high: estimate
kernel                        1.5    2      3      us  | estimate: an empty kernel
copy                          2.25   2.8    2.95   us  | p2pBandwidthLatencyTest on A100, nccl-tests issue 100
fill                          1      1.5    3      us  | estimate
record                        0.05   0.1    0.5    us  | estimate
wait                          0.05   0.1    0.5    us  | estimate
host_function                 5      10     50     us  | estimate: way to the host and back
value                         0.2    0.5    1      us  | estimate
device_bandwidth              1560   1835   2039   GB/s | peak: datasheet; low: p2pBandwidthLatencyTest, nccl-tests issue 100; typical: 0.9 of peak, as on H200
fp32_rate                     13.6   15.6   19.5   TFLOP/s | peak: datasheet; typical 0.8, low 0.7 of it: estimate
tensor_rate                   215    250    312    TFLOP/s | peak: datasheet; low: fp16 matrices of 8192 on A800, mli/transformers-benchmarks issue 4; typical: 0.8 of peak, as on H200
host_to_device_bandwidth      24     25     26     GB/s | PCIe 4 x16, pinned: 25 in bam issue 54; around it, estimate
device_to_host_bandwidth      24     25     26     GB/s | PCIe 4 x16, pinned: 25 in nvbandwidth issue 53; around it, estimate
pageable_bandwidth            6      9      12     GB/s | unverified
peer_bandwidth                212    259    300    GB/s | over NVLink 3, both ways 425 to 519 in nccl-tests issue 100, halved; high: datasheet, one direction
