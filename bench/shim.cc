// The C face of Google Benchmark, and the only C++ of the project: the library has no C interface.
//
// The library's own main, flags and console are left out. Its console would say "Library was built
// as DEBUG" on Debian, whose package leaves the library's assertions on; they are not in the timed
// loop, which is inline and compiled here. Its repetitions run one benchmark many times in a row,
// whereas rounds must alternate; so a reporter of ours collects each round, and the library's JSON
// reporter writes the chosen runs at the end.
extern "C" {
#include "bench/shim.h"

#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"
}

#include <benchmark/benchmark.h>

#include <regex.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using Run = benchmark::BenchmarkReporter::Run;

struct bench_state {
    benchmark::State *state;
    std::string failure;
};

struct bench_measured {
    std::string name;
    std::vector<Run> runs; // one a round
    std::vector<double> real_ns, cpu_ns;
    std::map<std::string, double> added_counters;

    const Run &fastest() const {
        return runs[(size_t)(std::min_element(real_ns.begin(), real_ns.end()) - real_ns.begin())];
    }
};

struct bench_results {
    std::vector<bench_measured> measured;
};

namespace {

struct registration {
    std::string name;
    void (*function)(bench_state *, void *);
    void *argument;
    bool manual;
    uint64_t iterations; // 0: the library chooses
};

struct run_progress {
    base_progress line;
    const char *label;
    uint64_t done;
};

std::vector<registration> registrations;
std::map<std::string, std::string> context;

// Takes the runs of one round and prints nothing.
class collector : public benchmark::BenchmarkReporter {
  public:
    collector(bench_results *results, run_progress *progress)
        : results_(results), progress_(progress) {}
    bool ReportContext(const Context &) override { return true; }
    void ReportRuns(const std::vector<Run> &runs) override {
        for (const Run &run : runs) {
            if (run.error_occurred || run.run_type != Run::RT_Iteration) continue;
            measured_of(run.run_name.function_name).push_back(run);
        }
        if (progress_->label) base_progress_update(&progress_->line, ++progress_->done);
    }

  private:
    std::vector<Run> &measured_of(const std::string &name) {
        for (bench_measured &measured : results_->measured)
            if (measured.name == name) return measured.runs;
        results_->measured.push_back({});
        results_->measured.back().name = name;
        return results_->measured.back().runs;
    }

    bench_results *results_;
    run_progress *progress_;
};

// Calls one benchmark; after a failure or an interrupt the remaining ones only say that they are
// skipped.
void call_one(benchmark::State &library_state, const registration &registered,
              std::string *failure) {
    if (!failure->empty() || base_interrupted()) {
        library_state.SkipWithError("skipped");
        return;
    }
    bench_state state = {&library_state, ""};
    registered.function(&state, registered.argument);
    if (!state.failure.empty()) *failure = registered.name + ": " + state.failure;
}

// The registrations that the filter leaves. Not left to the library: it matches names to which it
// has added "/min_time:0.008", so that "$" never would.
enum base_status choose(const char *filter, std::vector<registration> *chosen) {
    regex_t expression;
    const int error = regcomp(&expression, filter, REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
        char reason[128];
        regerror(error, &expression, reason, sizeof reason);
        return base_status_set(BASE_INVALID_VALUE, "'%s' is no regular expression: %s", filter,
                               reason);
    }
    for (const registration &registered : registrations)
        if (regexec(&expression, registered.name.c_str(), 0, nullptr, 0) == 0)
            chosen->push_back(registered);
    regfree(&expression);
    if (chosen->empty())
        return base_status_set(BASE_INVALID_VALUE, "no benchmark's name matches '%s'", filter);
    return BASE_OK;
}

// Hands one round to the library anew: how often a benchmark iterates is fixed at registration.
void register_round(const std::vector<registration> &chosen, const bench_options *options,
                    std::string *failure) {
    benchmark::ClearRegisteredBenchmarks();
    for (const registration &registered : chosen) {
        auto *made = benchmark::RegisterBenchmark(registered.name.c_str(),
                                                  [&registered, failure](benchmark::State &state) {
                                                      call_one(state, registered, failure);
                                                  });
        made->Unit(benchmark::kNanosecond);
        if (registered.manual) made->UseManualTime();
        if (registered.iterations)
            made->Iterations((benchmark::IterationCount)registered.iterations);
        else
            made->MinTime(options->min_time_s > 0 ? options->min_time_s : 0.1);
    }
}

enum base_status run_rounds(std::vector<registration> *chosen, const bench_options *options,
                            bench_results *results, run_progress *progress) {
    const int rounds = std::max(1, options->rounds);
    std::ostringstream nothing;
    for (registration &registered : *chosen) registered.iterations = options->iterations;
    for (int round = 0; round < rounds; round++) {
        std::string failure;
        register_round(*chosen, options, &failure);
        collector reporter(results, progress);
        reporter.SetOutputStream(&nothing);
        reporter.SetErrorStream(&nothing);
        benchmark::RunSpecifiedBenchmarks(&reporter, ".");
        benchmark::ClearRegisteredBenchmarks();
        if (!failure.empty()) return base_status_set(BASE_CHECK_FAILED, "%s", failure.c_str());
        if (base_interrupted()) return base_status_set(BASE_INTERRUPTED, "interrupted");
        for (const bench_measured &measured : results->measured)
            for (registration &registered : *chosen)
                if (registered.name == measured.name)
                    registered.iterations = (uint64_t)measured.runs[0].iterations;
    }
    return BASE_OK;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The run that stands for all rounds, under the bare name: the library would append "/manual_time"
// and "/iterations:N".
Run run_to_report(const bench_measured &measured, size_t index) {
    Run run = measured.fastest();
    run.run_name = benchmark::BenchmarkName();
    run.run_name.function_name = measured.name;
    run.family_index = (int64_t)index;
    run.per_family_instance_index = 0;
    run.repetitions = 1;
    run.repetition_index = 0;
    for (const auto &counter : measured.added_counters)
        run.counters[counter.first] = counter.second;
    if (measured.runs.size() > 1) {
        run.counters["rounds"] = (double)measured.runs.size();
        run.counters["median_ns"] = median(measured.real_ns);
    }
    return run;
}

// Google Benchmark's JSON of the results whose name begins with PREFIX; "" if there are none.
std::string results_json(const bench_results *results, const char *prefix) {
    std::vector<Run> runs;
    for (size_t i = 0; i < results->measured.size(); i++)
        if (results->measured[i].name.rfind(prefix, 0) == 0)
            runs.push_back(run_to_report(results->measured[i], i));
    if (runs.empty()) return "";

    auto *&library_context = benchmark::internal::GetGlobalContext();
    if (library_context)
        library_context->clear(); // else the library refuses a key that it has seen
    for (const auto &entry : context) benchmark::AddCustomContext(entry.first, entry.second);

    std::ostringstream text;
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&text);
    reporter.SetErrorStream(&text);
    if (!reporter.ReportContext(benchmark::BenchmarkReporter::Context()))
        std::abort(); // it never refuses
    reporter.ReportRuns(runs);
    reporter.Finalize();
    return text.str();
}

void take_times(bench_measured *measured) {
    for (const Run &run : measured->runs) {
        measured->real_ns.push_back(run.GetAdjustedRealTime());
        measured->cpu_ns.push_back(run.GetAdjustedCPUTime());
    }
}

void register_one(const char *name, void (*function)(bench_state *, void *), void *argument,
                  bool manual) {
    registrations.push_back({name, function, argument, manual, 0});
}

} // namespace

extern "C" {

void bench_register(const char *name, void (*function)(bench_state *, void *), void *argument) {
    register_one(name, function, argument, false);
}

void bench_register_manual(const char *name, void (*function)(bench_state *, void *),
                           void *argument) {
    register_one(name, function, argument, true);
}

void bench_unregister_all(void) { registrations.clear(); }

bool bench_batch_begin(bench_state *state, uint64_t *iteration_count) {
    // One batch is the whole call: its size is what the library asked for, so that it never runs
    // over.
    const benchmark::IterationCount all = state->state->max_iterations;
    *iteration_count = (uint64_t)all;
    return state->state->KeepRunningBatch(all);
}

void bench_time_add(bench_state *state, double seconds) { state->state->SetIterationTime(seconds); }

void bench_counter(bench_state *state, const char *name, double value) {
    state->state->counters[name] = value;
}

void bench_label(bench_state *state, const char *label) {
    std::string clean = label; // the library writes it into JSON as it is
    base_text_clean(&clean[0]);
    state->state->SetLabel(clean);
}

void bench_items(bench_state *state, uint64_t item_count) {
    state->state->SetItemsProcessed((int64_t)item_count);
}

void bench_fail(bench_state *state, const char *format, ...) {
    if (!state->failure.empty()) return;
    char text[BASE_STATUS_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    state->failure = text[0] ? text : "failed";
    state->state->SkipWithError(state->failure.c_str());
}

enum base_status bench_run(const bench_options *options, bench_results **results) {
    std::vector<registration> chosen;
    enum base_status status = choose(options->filter ? options->filter : ".", &chosen);
    if (status != BASE_OK) return status;
    bench_results *made = new bench_results;
    run_progress progress = {};
    progress.label = options->progress_label;
    if (progress.label)
        base_progress_begin(&progress.line, progress.label,
                            chosen.size() * (size_t)std::max(1, options->rounds));
    status = run_rounds(&chosen, options, made, &progress);
    if (progress.label) base_progress_end(&progress.line);
    if (status != BASE_OK) {
        delete made;
        return status;
    }
    for (bench_measured &measured : made->measured) take_times(&measured);
    *results = made;
    return BASE_OK;
}

void bench_results_destroy(bench_results *results) { delete results; }

bench_results *bench_results_create(void) { return new bench_results; }

size_t bench_results_add(bench_results *results, const char *name, const char *label,
                         const double *round_ns, int round_count) {
    std::string clean = label; // as in bench_label
    base_text_clean(&clean[0]);
    bench_measured added;
    added.name = name;
    for (int round = 0; round < round_count; round++) {
        Run run;
        run.run_type = Run::RT_Iteration;
        run.iterations = 1;
        run.threads = 1;
        run.time_unit = benchmark::kNanosecond;
        run.real_accumulated_time = run.cpu_accumulated_time = round_ns[round] / 1e9;
        run.report_label = clean;
        added.runs.push_back(run);
    }
    take_times(&added);
    results->measured.push_back(std::move(added));
    return results->measured.size() - 1;
}

void bench_results_append(bench_results *results, bench_results *added) {
    for (bench_measured &measured : added->measured)
        results->measured.push_back(std::move(measured));
    delete added;
}

size_t bench_results_count(const bench_results *results) { return results->measured.size(); }

bench_result bench_results_get(const bench_results *results, size_t index) {
    const bench_measured &measured = results->measured.at(index);
    bench_result result = {};
    result.name = measured.name.c_str();
    result.iterations = (uint64_t)measured.runs[0].iterations;
    result.round_count = (int)measured.runs.size();
    result.real_ns = measured.real_ns.data();
    result.cpu_ns = measured.cpu_ns.data();
    result.real_ns_minimum = *std::min_element(measured.real_ns.begin(), measured.real_ns.end());
    result.real_ns_median = median(measured.real_ns);
    return result;
}

size_t bench_results_find(const bench_results *results, const char *name) {
    for (size_t i = 0; i < results->measured.size(); i++)
        if (results->measured[i].name == name) return i;
    return SIZE_MAX;
}

void bench_results_counter(bench_results *results, size_t index, const char *name, double value) {
    results->measured.at(index).added_counters[name] = value;
}

bool bench_results_counter_get(const bench_results *results, size_t index, const char *name,
                               double *value) {
    const Run run = run_to_report(results->measured.at(index), index);
    const auto found = run.counters.find(name);
    if (found == run.counters.end()) return false;
    *value = found->second.value;
    return true;
}

void bench_context_set(const char *key, const char *value) { context[key] = value; }

enum base_status bench_results_write(const bench_results *results, const char *path) {
    return bench_results_write_some(results, "", path);
}

enum base_status bench_results_publish(const bench_results *results, const char *folder,
                                       const char *file_name) {
    const std::string path = std::string(folder) + "/" + file_name;
    const base_status status = bench_results_write(results, path.c_str());
    if (status == BASE_OK) printf("Results: %s\n", path.c_str());
    return status;
}

enum base_status bench_results_publish_json(const bench_results *results, const char *folder,
                                            const char *file_name) {
    bench_results_print(results);
    if (folder == nullptr) return BASE_OK;
    return bench_results_write(results, (std::string(folder) + "/" + file_name).c_str());
}

enum base_status bench_results_write_some(const bench_results *results, const char *prefix,
                                          const char *path) {
    const std::string json = results_json(results, prefix);
    if (json.empty()) return BASE_OK;
    base_file file;
    const enum base_status status = base_file_create(&file, path);
    if (status != BASE_OK) return status;
    fwrite(json.data(), 1, json.size(),
           file.stream); // base_file_commit looks at the stream's error flag
    return base_file_commit(&file);
}

void bench_results_print(const bench_results *results) {
    const std::string json = results_json(results, "");
    fwrite(json.data(), 1, json.size(), stdout);
}

} // extern "C"
