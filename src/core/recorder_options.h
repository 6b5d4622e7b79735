/* The options about what is measured and how, in the order of --help. A row is all that an option needs on its way to
 * the recorder: see core/option.h. */
/* clang-format off */
OPTION(FILTER, STRING, kernel, "kernel-name", CHOOSING, "only kernels of this name; a name or regex:PATTERN",
       .letter = 'k', .argument = "NAME")
OPTION(FILTER, CHOICE, name_base, "kernel-name-base", CHOOSING,
       "the name that --kernel-name is compared with (function)", .argument = "function|demangled|mangled",
       .choices = KPROF_CHOICES({"function", KPROF_NAME_FUNCTION}, {"demangled", KPROF_NAME_DEMANGLED},
                                {"mangled", KPROF_NAME_MANGLED}))
OPTION(CLI, STRING, kernel_id, "kernel-id", RUNNING | REPORT,
       "only launches in this context and stream (numbers, or patterns of their NVTX names), of kernels of this name "
       "or regex:PATTERN, of these numbers (from 1, or a pattern); an empty part stands for all",
       .argument = "CONTEXT:STREAM:NAME:N")
OPTION(RECORDER, FLAG, nvtx, "nvtx", RUNNING | KPROF_IGNORED_IN(REPORT), "keep the NVTX ranges that launches are in")
OPTION(FILTER, PATHS, nvtx_include, "nvtx-include", CHOOSING | TRACE,
       "only launches in these NVTX ranges, or a trace of their time alone: \"step/\" (pushed), \"net@a/*/b]\", "
       "\"epoch\" (started), regex:...; implies --nvtx", .argument = "RANGES")
OPTION(FILTER, PATHS, nvtx_exclude, "nvtx-exclude", CHOOSING, "no launches in these NVTX ranges; implies --nvtx",
       .argument = "RANGES")
OPTION(RECORDER, CHOICE, nvtx_of_process, "nvtx-push-pop-scope", RUNNING,
       "a launch is in what its own thread has pushed, or in what any thread has (thread)",
       .argument = "thread|process", .choices = KPROF_CHOICES({"thread", 0}, {"process", 1}))
OPTION(CLI, FLAG, call_stack, "call-stack", RUNNING | TRACE,
       "keep the call stacks of launches, in a trace of all calls: frames of Python and native ones, as "
       "--call-stack-type both")
OPTION(RECORDER, CHOICE, call_stack_type, "call-stack-type", RUNNING | TRACE,
       "keep the call stacks of launches, or of calls, of these frames (none)",
       .argument = "native|python|both|none[,...]",
       .choices = KPROF_CHOICES({"none", 0}, {"native", 1}, {"python", 2}, {"both", 3}),
       .value = 1)
OPTION(FILTER, PATHS, python_include, "python-include", RUNNING,
       "only launches that these functions of Python make, or functions that they call: \"forward\", "
       "\"train.py@step/*/loss\", regex:...; implies --call-stack-type python", .argument = "FUNCTIONS")
OPTION(FILTER, PATHS, python_exclude, "python-exclude", RUNNING,
       "no launches that these functions of Python make; implies --call-stack-type python", .argument = "FUNCTIONS")
OPTION(FILTER, PATHS, native_include, "native-include", RUNNING,
       "only launches that these native functions make, or functions that they call: \"main\", "
       "\"libnet.so@net::step\", regex:...; implies --call-stack-type native", .argument = "FUNCTIONS")
OPTION(FILTER, PATHS, native_exclude, "native-exclude", RUNNING,
       "no launches that these native functions make; implies --call-stack-type native", .argument = "FUNCTIONS")
OPTION(FILTER, NUMBER, launch_skip, "launch-skip", CHOOSING, "skip the first N launches that match", .letter = 's',
       .argument = "N")
OPTION(CLI, LIST, launches, "launch", REPORT, "of a report, only the launches of these numbers",
       .argument = "ID[-ID][,ID]")
OPTION(FILTER, NUMBER, launch_count, "launch-count", RUN | REPORT | DIFF | EXPORT | PLANNING,
       "take at most N launches that match; 0: no limit", .letter = 'c', .argument = "N")
OPTION(FILTER, NUMBER, launch_skip_before_match, "launch-skip-before-match", CHOOSING,
       "skip the first N launches of any kernel", .argument = "N")
OPTION(FILTER, CHOICE, filter_mode, "filter-mode", CHOOSING,
       "skip and count all launches together, those of each device by themselves, or those of each kernel, grid, "
       "block and shared memory (global)",
       .argument = "global|per-gpu|per-launch-config",
       .choices = KPROF_CHOICES({"global", KPROF_FILTER_GLOBAL}, {"per-gpu", KPROF_FILTER_PER_DEVICE},
                                {"per-launch-config", KPROF_FILTER_PER_CONFIG}))
OPTION(RECORDER, FLAG, census, "census", RUNNING,
       "count and time every launch, without counters; with --top, metrics or -c measure the kernels with most of the "
       "GPU's time, too, in the same run where the program launches them again, else in a second one")
OPTION(RECORDER, FLAG, traces, "trace", RUNNING,
       "record what runs on the GPU and when, too, as kprof trace does, but not while launches are measured")
OPTION(RECORDER, CHOICE, kills, "kill", RUNNING,
       "end a process when as many of its launches are measured as --launch-count says (no)", .argument = "yes|no",
       .choices = KPROF_CHOICES({"no", 0}, {"yes", 1}))
OPTION(CLI, CHOICE, profile_from_start, "profile-from-start", RUNNING | TRACE,
       "measure or trace from the start, or from the application's call of cudaProfilerStart on (on); cudaProfilerStop "
       "ends both",
       .argument = "on|off", .initial = KPROF_UNSET, .choices = KPROF_CHOICES({"on", 1}, {"off", 0}))
OPTION(RECORDER, CHOICE, starts_unarmed, "armed", RUNNING | TRACE,
       "measure or trace from the start, or only while kprof ctl start has told the processes to (yes)",
       .argument = "yes|no", .choices = KPROF_CHOICES({"yes", 0}, {"no", 1}))
OPTION(FILTER, STRING, range_filter, "range-filter", RUNNING,
       "only launches in these ranges between cudaProfilerStart and cudaProfilerStop, by their numbers, and in these "
       "instances of the NVTX ranges of --nvtx-include; yes: numbered anew in each such range",
       .argument = "[yes|no]:RANGES:RANGES")
OPTION(FILTER, STRING, schedule, "schedule", RUNNING | TRACE,
       "measure or trace only active steps, as torch.profiler.schedule does: skip the first steps, then wait, warm up "
       "and measure, REPEAT times; 0: for ever",
       .argument = "SKIP_FIRST,WAIT,WARMUP,ACTIVE,REPEAT")
OPTION(FILTER, STRING, step, "step", RUNNING | TRACE,
       "steps of --schedule are NVTX ranges, as --nvtx-include has them; else ranges of cudaProfilerStart with "
       "--profile-from-start off, or launches that match",
       .argument = "RANGES")
OPTION(CLI, FLAG, ignores_profiler_calls, "disable-profiler-start-stop", RUNNING,
       "ignore cudaProfilerStart and cudaProfilerStop")
OPTION(FILTER, ORDINALS, device_mask, "devices", RUN | REPORT | DIFF | EXPORT | PLAN | LIST | TELL,
       "only these CUDA devices", .argument = "N[,N]", .note = "numbers of CUDA devices, from 0 to 63")
OPTION(RECORDER, CHOICE, follow_children, "target-processes", RUNNING | TRACE,
       "profile the first process only, or its child processes too (all)", .argument = "application-only|all",
       .initial = 1, .choices = KPROF_CHOICES({"application-only", 0}, {"all", 1}))

OPTION(FILTER, LIST, processes, "target-processes-filter", RUNNING | TRACE,
       "profile only processes whose program has such a name; the first expression that matches decides",
       .argument = "NAME|regex:PATTERN|exclude:NAME|exclude-tree:NAME[,...]")

OPTION(CLI, FLAG, null_stdin, "null-stdin", RUNNING | TRACE, "the application reads /dev/null as its standard input")

OPTION(RECORDER, CHOICE, replay_choice, "replay-mode", RUNNING,
       "repeat each launch for every pass, measure each launch in one pass, or repeat where that is safe (auto); "
       "application: run the program once for each pass; "
       "range: measure an NVTX range of --nvtx-include, or one from cudaProfilerStart to cudaProfilerStop, as one, and "
       "repeat it for every pass where that is safe; app-range: the same, in a run of the program for each pass",
       .argument = "kernel|multiplex|auto|application|range|app-range",
       .choices = KPROF_CHOICES({"kernel", KPROF_REPLAY_ONLY}, {"multiplex", KPROF_MULTIPLEX_ALL},
                                {"auto", KPROF_REPLAY_WHERE_PROVED}, {"application", KPROF_REPLAY_APPLICATION},
                                {"range", KPROF_RANGES}, {"app-range", KPROF_RANGES_OF_RUNS}))
OPTION(CLI, CHOICE, run_match, "app-replay-match", RUNNING,
       "with --replay-mode application: match launches of several runs by kernel, also by grid and block, also by "
       "context and stream (grid)",
       .argument = "name|grid|all", .initial = KPROF_MATCH_GRID,
       .choices = KPROF_CHOICES({"name", KPROF_MATCH_NAME}, {"grid", KPROF_MATCH_GRID}, {"all", KPROF_MATCH_ALL}))
OPTION(CLI, CHOICE, run_order, "app-replay-mode", RUNNING,
       "with --replay-mode application: fail unless each run has all launches in one order, or in any, or leave out "
       "what a run lacks (balanced)",
       .argument = "strict|balanced|relaxed", .initial = KPROF_ORDER_BALANCED,
       .choices = KPROF_CHOICES({"strict", KPROF_ORDER_STRICT}, {"balanced", KPROF_ORDER_BALANCED},
                                {"relaxed", KPROF_ORDER_RELAXED}))
OPTION(CLI, CHOICE, buffers_in_memory, "app-replay-buffer", RUNNING,
       "with --replay-mode application: keep what earlier runs have measured in files, or in memory (file)",
       .argument = "file|memory", .choices = KPROF_CHOICES({"file", 0}, {"memory", 1}))
OPTION(RECORDER, COUNT, multiplex_samples, "multiplex-samples", RUNNING,
       "when launches are not repeated: take at most N samples of each kernel and shape (32)", .argument = "N",
       .initial = KPROF_MULTIPLEX_SAMPLES, .value = KPROF_MOST_SAMPLES)
OPTION(RECORDER, CHOICE, graph_profiling, "graph-profiling", RUNNING | TRACE,
       "measure or trace each kernel of a CUDA graph, or the graph as one (node)", .argument = "node|graph",
       .choices = KPROF_CHOICES({"node", KPROF_GRAPH_NODES}, {"graph", KPROF_GRAPH_WHOLE}))
OPTION(RECORDER, COUNT, replay_batch, "replay-batch", PLANNING,
       "repeat at most N launches together (auto: as many as memory allows, up to 2048)", .argument = "N|auto",
       .choices = KPROF_CHOICES({"auto", 0}), .value = KPROF_BATCH_MOST_LAUNCHES)
OPTION(RECORDER, CHOICE, cache_control, "cache-control", PLANNING,
       "before each measured launch, empty all caches as ncu does, or L2 alone, which is faster, or none (all)",
       .argument = "all|l2|none",
       .choices = KPROF_CHOICES({"all", KPROF_CACHE_FLUSH_ALL}, {"l2", KPROF_CACHE_FLUSH_L2},
                                {"none", KPROF_CACHE_FLUSH_NONE}))
OPTION(RECORDER, CHOICE, witness_control, "witnesses", RUNNING,
       "count instructions in every pass to find passes that differ: always, or after large batches (all)",
       .argument = "all|auto",
       .choices = KPROF_CHOICES({"all", KPROF_WITNESSES_ALL}, {"auto", KPROF_WITNESSES_AUTO}))
OPTION(RECORDER, CHOICE, sampling_period, "warp-sampling-interval", RUNNING,
       "sample instructions every 2^(5+N) cycles, or as often as a launch's duration asks for (auto)",
       .argument = "auto|N",
       .choices = KPROF_CHOICES({"auto", 0}, {"0", 5}, {"1", 6}, {"2", 7}, {"3", 8}, {"4", 9}, {"5", 10},
                                {"6", 11}, {"7", 12}, {"8", 13}, {"9", 14}, {"10", 15}, {"11", 16}, {"12", 17},
                                {"13", 18}, {"14", 19}, {"15", 20}, {"16", 21}, {"17", 22}, {"18", 23}, {"19", 24},
                                {"20", 25}, {"21", 26}, {"22", 27}, {"23", 28}, {"24", 29}, {"25", 30}, {"26", 31}),
       .note = "N is from 0 to 26, since CUPTI samples every 2^31 cycles at most")
OPTION(RECORDER, COUNT, sampling_passes, "warp-sampling-max-passes", RUNNING,
       "repeat a batch at most N times for samples of its instructions, each with an interval of its own (3)",
       .argument = "N", .initial = KPROF_SAMPLING_PASSES, .value = 1000000)
OPTION(RECORDER, BYTES, sampling_buffer_bytes, "warp-sampling-buffer-size", RUNNING,
       "memory of the device for samples of instructions (64M)", .argument = "BYTES")
OPTION(RECORDER, FLAG, follows_managed, "unified-memory", TRACE,
       "record moves of memory that the host and GPUs share, and page faults of both; that takes time")
OPTION(CLI, FLAG, samples_program, "pm-sampling", RUNNING | TRACE,
       "of kprof trace: sample how busy the GPU's parts are, over the time of the program")
OPTION(RECORDER, COUNT, timeline_interval_ns, "pm-sampling-interval", RUNNING | TRACE,
       "sample counters over time every N ns, or about a hundred times in a launch, every 1 to 20 us, or every "
       "millisecond of a program (auto)",
       .argument = "N|auto", .choices = KPROF_CHOICES({"auto", 0}, {"0", 0}), .value = 1000000000)
OPTION(RECORDER, BYTES, timeline_buffer_bytes, "pm-sampling-buffer-size", RUNNING | TRACE,
       "memory of the device for samples of counters over time (auto: 64M, of a program 128M)", .argument = "N|auto",
       .choices = KPROF_CHOICES({"auto", 0}, {"0", 0}))
/* clang-format on */
