// The control and the race checker from C++, by their headers as they are.
#define SIM_CALL_SITES
#include "simulator/sim.h"

#include "simulator/sim_race.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static int complain(const char *what) {
    std::fprintf(stderr, "%s: %s\n", what, base_status_message());
    return 1;
}

int main() {
    sim_race_options options{};
    options.quiet = true;
    if (sim_race_start(&options) != BASE_OK)
        return complain("start");
    cudaStream_t streams[2];
    void *memory;
    for (cudaStream_t &stream : streams)
        if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
            return complain("stream");
    if (cudaMalloc(&memory, 64) != cudaSuccess)
        return complain("memory");
    const std::vector<sim_access> accesses{{SIM_ACCESS_WRITE, memory, 64, 1, 0, 0}};
    sim_kernel kernel{};
    kernel.name = "kernel";
    kernel.body = [](const void *) {};
    kernel.accesses = accesses.data();
    kernel.access_count = accesses.size();
    if (sim_launch_kernel(streams[0], &kernel) != cudaSuccess)
        return complain("first");
    if (sim_launch_kernel(streams[1], &kernel) != cudaSuccess)
        return complain("second");
    const std::string second = std::string(__FILE__) + ":" + std::to_string(__LINE__ - 2);
    sim_race_stop();
    const sim_race_report *report = sim_race_report_at(0);
    if (sim_race_count(SIM_RACE_RULE_COUNT) != 1 || report->rule != SIM_RACE_WRITE_WRITE)
        return complain("one race");
    if (second != report->second.site)
        return complain(report->second.site);
    return 0;
}
