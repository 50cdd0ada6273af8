"""Every promise of the requirement seeds: id, seed, our wording, and the test that carries it."""

# Left out, because no Python program could keep or break them:
# - building and linking C++: cmake options, find_package, DLL export, header files, compilers;
# - one platform's back ends (WinHTTP, libcurl, ws2_32); the transport protocol itself is listed;
# - C++ memory and types: pointers, noexcept, virtual, and the "since version" lines;
# - advice that binds the caller only (a node should be idempotent), reasons given for a rule,
#   history (53 ms before a change) and what was kept for a transition (ChatSession.History);
# - facts about the seeds' own repositories: stars, file trees, number of test cases.

from typing import NamedTuple

OPEN = "open"


class Promise(NamedTuple):
    """One testable fact a seed promises."""

    id: str
    """Area and running number, such as "graph-012"; never reused."""
    seed: str
    """Which seed promises it: "000", "002", "003" or "004"."""
    text: str
    """What is promised, in our wording and our names."""
    test: str = OPEN
    """One test that carries it, such as "tests/graph/test_run.py::test_name", or OPEN."""


PROMISES: tuple[Promise, ...] = (
    # graph (seed 004): qa::core, execution model
    Promise("graph-001", "004", "A node reads and writes the named channels of its graph's state"),
    Promise(
        "graph-002",
        "004",
        "A superstep runs its ready nodes as one batch and commits their "
        "writes through the reducers afterwards",
    ),
    Promise(
        "graph-003",
        "004",
        "Every node of a batch reads the same snapshot from before the "
        "superstep, never a sibling's write of the same batch",
    ),
    Promise(
        "graph-004",
        "004",
        "With concurrent supersteps on, nodes of one superstep are in flight at the same time",
    ),
    Promise("graph-005", "004", "MapNode runs its worker once for each item of a list channel"),
    Promise(
        "graph-006",
        "004",
        "MapNode never has more items in flight than its concurrency limit",
    ),
    Promise("graph-007", "004", "Reducers.overwrite keeps the newest write of a channel"),
    Promise(
        "graph-008",
        "004",
        "Reducers.append adds new writes behind the values a channel already holds",
    ),
    Promise(
        "graph-009",
        "004",
        "Reducers.merge merges a written object into the object a channel already holds",
    ),
    Promise("graph-010", "004", "A channel takes a user-written reducer"),
    Promise(
        "graph-011",
        "004",
        "An unconditional edge makes its target ready in the superstep after its source ran",
    ),
    Promise(
        "graph-012",
        "004",
        "A conditional edge calls its router on the state and goes to "
        "the node the returned label is mapped to",
    ),
    Promise(
        "graph-013",
        "004",
        "One node with several outgoing edges makes all its targets ready in the same superstep",
    ),
    Promise(
        "graph-014",
        "004",
        "A graph may contain a cycle, and the loop ends when its router leaves it",
    ),
    Promise("graph-015", "004", "max_steps bounds a cycle that would never end"),
    Promise(
        "graph-016",
        "004",
        "A checkpoint is saved after every superstep without being asked for",
    ),
    Promise(
        "graph-017",
        "004",
        "Graph.resume continues from any saved checkpoint, an old one as well as the latest",
    ),
    Promise(
        "graph-018",
        "004",
        "A loop resumed from a checkpoint in its middle ends in the same state as an unbroken run",
    ),
    Promise(
        "graph-019",
        "004",
        "The thirty-second example (channel, one node, __start__ and __end__ "
        "edges) ends as finished with its text upper-cased",
    ),
    Promise("graph-020", "004", "NodeResult.ok carries the writes of a node"),
    # graph (seed 004): error contract and retries
    Promise("graph-021", "004", "A node fails its run by returning NodeResult.fail with a message"),
    Promise(
        "graph-022",
        "004",
        "An exception raised in a node is recorded as a node failure and does not leave Graph.run",
    ),
    Promise(
        "graph-023",
        "004",
        "RunResult.errors gives node name, message and number of attempts of each failure",
    ),
    Promise(
        "graph-024",
        "004",
        "Writes of the failing batch are committed before the run stops with stop_reason error",
    ),
    Promise("graph-025", "004", "After a failed run final_state is still there to read"),
    Promise(
        "graph-026",
        "004",
        "After a failed run its checkpoints are still there and none is lost",
    ),
    Promise("graph-027", "004", "A node's retry policy sets the number of attempts"),
    Promise(
        "graph-028",
        "004",
        "The wait between retries grows linearly from the policy's base delay",
    ),
    Promise(
        "graph-029",
        "004",
        "A node that succeeds within its attempts leaves the run without errors",
    ),
    Promise(
        "graph-030",
        "004",
        "A node that uses up its attempts stops the run with stop_reason error instead of raising",
    ),
    Promise(
        "graph-031",
        "004",
        "Only with rethrow_on_exhausted does a node that used up its attempts raise to the caller",
    ),
    # graph (seed 004): stop reasons, cancel and deadline
    Promise("graph-032", "004", "stop_reason finished: the run came to its normal end"),
    Promise("graph-033", "004", "stop_reason max_steps: the run reached its limit of supersteps"),
    Promise("graph-034", "004", "stop_reason halted: a node asked for a halt"),
    Promise("graph-035", "004", "stop_reason error: a node failed"),
    Promise(
        "graph-036",
        "004",
        "stop_reason error: a router failed or returned a label without a target",
    ),
    Promise(
        "graph-037",
        "004",
        "stop_reason error: the run was sent to a node that does not "
        "exist, with that node named in RunResult.errors",
    ),
    Promise("graph-038", "004", "stop_reason cancelled: RunControl.cancel() was called"),
    Promise("graph-039", "004", "stop_reason timeout: the run's deadline passed"),
    Promise(
        "graph-040",
        "004",
        "RunOptions.with_timeout sets a deadline in milliseconds for the whole run",
    ),
    Promise(
        "graph-041",
        "004",
        "A RunControl handed in with RunOptions can be cancelled from "
        "another thread or task while the run is going",
    ),
    Promise(
        "graph-042",
        "004",
        "ctx.stop_requested() tells a running node that its run was cancelled or timed out",
    ),
    Promise(
        "graph-043",
        "004",
        "ctx.throw_if_stopped() ends a node at that line once its run is to stop",
    ),
    Promise("graph-044", "004", "A stop request is seen between two supersteps"),
    Promise("graph-045", "004", "A stop request is seen before and after a node's execution"),
    Promise("graph-046", "004", "A stop request is seen during the wait before a retry"),
    Promise(
        "graph-047",
        "004",
        "A call blocking inside a node while its run is stopped is bounded by its own timeout",
    ),
    Promise("graph-048", "004", "A stopped run still commits the checkpoint of its current batch"),
    Promise(
        "graph-049",
        "004",
        "A node that ended because its run was stopped is not listed in RunResult.errors",
    ),
    Promise(
        "graph-050",
        "004",
        "A cancelled or timed-out run can be resumed from its committed checkpoint",
    ),
    Promise(
        "graph-051",
        "004",
        "The workers of a MapNode see the stop request and start no further items",
    ),
    # graph (seed 004): human in the loop
    Promise(
        "graph-052",
        "004",
        "ctx.interrupt(payload) pauses the run with stop_reason interrupted",
    ),
    Promise("graph-053", "004", "RunResult.interrupts carries the payload of each paused node"),
    Promise(
        "graph-054",
        "004",
        "The checkpoint of a paused run keeps the nodes still to run and the interrupt payloads",
    ),
    Promise(
        "graph-055",
        "004",
        "Graph.resume with a ResumeCommand hands each value to the paused node it names",
    ),
    Promise("graph-056", "004", "ResumeCommand.for_node builds the answer for one named node"),
    Promise(
        "graph-057",
        "004",
        "Several nodes paused in one superstep can be answered in separate resumes",
    ),
    Promise("graph-058", "004", "The writes of a paused node are not committed"),
    Promise("graph-059", "004", "A paused node stays in the set of active nodes"),
    Promise("graph-060", "004", "A resumed node runs again from its first line"),
    Promise(
        "graph-061",
        "004",
        "ctx.has_resume() is false on a node's first pass and true once a value was given to it",
    ),
    Promise("graph-062", "004", "ctx.resume() returns the value given to the paused node"),
    # graph (seed 004): subgraphs
    Promise("graph-063", "004", "add_subgraph mounts a built graph as one node of a parent graph"),
    Promise(
        "graph-064",
        "004",
        "SubgraphConfig.inputs fills each child channel from the parent channel it names",
    ),
    Promise(
        "graph-065",
        "004",
        "SubgraphConfig.outputs names the child channels written back to the parent",
    ),
    Promise("graph-066", "004", "With empty inputs a subgraph gets a copy of all parent channels"),
    Promise(
        "graph-067",
        "004",
        "With empty outputs a subgraph writes all its channels back to the parent",
    ),
    Promise("graph-068", "004", "A child run that ends in error makes the parent node fail"),
    Promise("graph-069", "004", "A child run that ends as cancelled makes the parent node fail"),
    Promise("graph-070", "004", "A child run that ends in timeout makes the parent node fail"),
    Promise("graph-071", "004", "A child run that ends at max_steps makes the parent node fail"),
    Promise("graph-072", "004", "A child run that halts halts the parent"),
    Promise(
        "graph-073",
        "004",
        'A paused child raises an interrupt with payload {"subgraph": '
        'name, "interrupts": [...]} in the parent',
    ),
    Promise(
        "graph-074",
        "004",
        "Resuming the parent hands the value to the child node named by SubgraphConfig.resume_node",
    ),
    Promise(
        "graph-075",
        "004",
        "With resume_node empty and one pending child node, the value goes to that node",
    ),
    Promise(
        "graph-076",
        "004",
        "A child paused at several nodes can be resumed through the parent",
    ),
    Promise(
        "graph-077",
        "004",
        "A resume aimed at a subgraph is checked: an ambiguous or unknown child node is refused",
    ),
    Promise(
        "graph-078",
        "004",
        'A chunk a child node emits reaches the parent stream as {"subgraph", "node", "chunk"}',
    ),
    Promise("graph-079", "004", "A subgraph runs under its parent's thread id"),
    # graph (seed 004): threads
    Promise("graph-080", "004", "One built graph and one checkpoint store serve several threads"),
    Promise("graph-081", "004", "RunResult names the thread it ran under"),
    Promise("graph-082", "004", "Every checkpoint carries its thread id"),
    Promise("graph-083", "004", "Every stream event carries its thread id"),
    Promise("graph-084", "004", "A node reads its thread id from its context"),
    Promise("graph-085", "004", "Runs under two thread ids leave each other's history alone"),
    Promise(
        "graph-086",
        "004",
        "store.latest(thread) returns that thread's newest checkpoint, ready for resume",
    ),
    Promise("graph-087", "004", "A resume without a thread id keeps the thread of its checkpoint"),
    Promise("graph-088", "004", "store.threads() lists the threads that have a history"),
    Promise("graph-089", "004", "store.size(thread) counts the checkpoints of one thread"),
    Promise("graph-090", "004", "store.empty(thread) tells whether a thread has no history"),
    Promise(
        "graph-091",
        "004",
        "store.latest(thread) raises a lookup error for a thread without history",
    ),
    Promise("graph-092", "004", "A run without a thread id has an empty thread id everywhere"),
    # graph (seed 004): streaming
    Promise(
        "graph-093",
        "004",
        "Graph.stream pushes the lifecycle events of a run in the order they happen",
    ),
    Promise(
        "graph-094",
        "004",
        "Graph.stream ends with the same RunResult that Graph.run would have given",
    ),
    Promise("graph-095", "004", "A resumed run can be streamed in the same way as a first run"),
    Promise(
        "graph-096",
        "004",
        "ctx.emit(chunk) reaches the listener at once, while the node is still running",
    ),
    Promise(
        "graph-097",
        "004",
        "Stream order is run_begin, per node node_begin, its chunks and "
        "node_end, then step_committed, and last run_finished",
    ),
    Promise("graph-098", "004", "A pause adds an interrupt event to the stream"),
    Promise(
        "graph-099",
        "004",
        "The run_finished event carries the stop reason and the number of steps",
    ),
    Promise(
        "graph-100",
        "004",
        "With concurrent nodes the listener is called for one event at a time, so it needs no lock",
    ),
    Promise("graph-101", "004", "Outside a streamed run ctx.emit does nothing"),
    # graph (seed 004): observers
    Promise("graph-102", "004", "Every run gets a run id of its own, given in RunResult.run_id"),
    Promise("graph-103", "004", "Observer.on_run_begin is called with the run id"),
    Promise("graph-104", "004", "Observer.on_node_begin is called before a node runs"),
    Promise("graph-105", "004", "Observer.on_node_end is called after a node ran"),
    Promise(
        "graph-106",
        "004",
        "Observer.on_step_committed is called after each committed superstep",
    ),
    Promise(
        "graph-107",
        "004",
        "Observer.on_retry is called with node, attempt and error before another attempt",
    ),
    Promise("graph-108", "004", "Observer.on_run_finished is called at the end of a run"),
    Promise("graph-109", "004", "Several observers on one graph all receive every notice"),
    Promise(
        "graph-110",
        "004",
        "Observers are notified one at a time even when nodes run concurrently",
    ),
    Promise("graph-111", "004", "LoggingObserver writes the lifecycle of a run to the log"),
    Promise("graph-112", "004", "JsonTraceObserver records one span per node with its duration"),
    Promise("graph-113", "004", "JsonTraceObserver's JSON holds run_id, stop_reason and spans"),
    Promise("graph-114", "004", "JsonTraceObserver may be fed from several threads at once"),
    Promise("graph-115", "004", "MetricsObserver counts supersteps"),
    Promise("graph-116", "004", "MetricsObserver counts node errors"),
    Promise("graph-117", "004", "MetricsObserver counts retries"),
    Promise("graph-118", "004", "MetricsObserver sums up the time spent in each node"),
    # graph (seed 004): checkpoint stores
    Promise(
        "graph-119",
        "004",
        "A graph built with a checkpoint store saves its checkpoints there",
    ),
    Promise(
        "graph-120",
        "004",
        "A user-written CheckpointStore receives every checkpoint the run made",
    ),
    Promise(
        "graph-121",
        "004",
        "A CheckpointStore needs save, list, latest, empty and size only; "
        "the calls for one thread work on top of these",
    ),
    Promise("graph-122", "004", "The in-memory checkpoint store works without a file"),
    Promise(
        "graph-123",
        "004",
        "The JSONL checkpoint store opened by another process reads the whole history back",
    ),
    Promise(
        "graph-124",
        "004",
        "A graph built again with the same topology resumes from a "
        "stored checkpoint with its reducers in force",
    ),
    Promise(
        "graph-125",
        "004",
        "The JSONL checkpoint store adds one line per save and does not rewrite the file",
    ),
    Promise(
        "graph-126",
        "004",
        "Concurrent saves inside one process are serialised by the JSONL store",
    ),
    Promise(
        "graph-127",
        "004",
        "A checkpoint file in the old JSON array form is converted at the first save",
    ),
    Promise(
        "graph-128",
        "004",
        "A torn last line left by a crash is dropped when the file is loaded",
    ),
    Promise("graph-129", "004", "A torn last line is repaired before the next save"),
    Promise("graph-130", "004", "erase_thread deletes the whole history of one thread"),
    Promise(
        "graph-131",
        "004",
        "erase_thread of a store that does not implement it raises an unsupported error",
    ),
    Promise(
        "graph-132",
        "004",
        "compact() shrinks the checkpoint file by hand without losing a live checkpoint",
    ),
    Promise(
        "graph-133",
        "004",
        "Every write, rewrite, erase and prune of the JSONL store holds a side-car .lock file",
    ),
    Promise(
        "graph-134",
        "004",
        "Two store objects writing to one file at the same time lose nothing",
    ),
    Promise(
        "graph-135",
        "004",
        "A rewrite reloads the file under the lock, so records another process just added survive",
    ),
    Promise("graph-136", "004", "prune(keep_last=n) keeps the newest n checkpoints of each thread"),
    Promise("graph-137", "004", "prune can be limited to one thread"),
    Promise("graph-138", "004", "prune by max_age_ms removes the checkpoints older than that"),
    Promise("graph-139", "004", "prune combines thread, keep_last and max_age_ms in one call"),
    Promise(
        "graph-140",
        "004",
        "A checkpoint's creation time is stored with it and survives a reload",
    ),
    Promise("graph-141", "004", "Checkpoint files work on Chinese and other non-ASCII paths"),
    # llm (seed 004): qa::llm, providers
    Promise(
        "llm-001",
        "004",
        "Provider is an interface: agents and graphs run unchanged with any implementation",
    ),
    Promise(
        "llm-002",
        "004",
        "Putting OpenAIProvider or AnthropicProvider for MockProvider needs no other change",
    ),
    Promise(
        "llm-003",
        "004",
        "OpenAIProvider talks to any endpoint of the OpenAI protocol by base URL, key and model",
    ),
    Promise("llm-004", "004", "MockProvider plays queued texts and tool calls in order, offline"),
    Promise("llm-005", "004", "AnthropicProvider sends the key as x-api-key and no bearer token"),
    Promise(
        "llm-006",
        "004",
        "AnthropicProvider sends an anthropic-version header, 2023-06-01 unless told otherwise",
    ),
    Promise(
        "llm-007",
        "004",
        "AnthropicProvider puts the system prompt into the top-level system field",
    ),
    Promise("llm-008", "004", "AnthropicProvider sends and reads messages as content blocks"),
    Promise(
        "llm-009",
        "004",
        "AnthropicProvider offers tools to the model and reads its tool calls",
    ),
    Promise(
        "llm-010",
        "004",
        "AnthropicProvider maps earlier tool calls and results in the "
        "history to tool_use and tool_result blocks",
    ),
    Promise("llm-011", "004", "AnthropicProvider reads several tool blocks in one answer"),
    Promise(
        "llm-012",
        "004",
        "AnthropicProvider sends its configured default max_tokens when a request names none",
    ),
    Promise("llm-013", "004", "AnthropicProvider reads streamed server events"),
    Promise(
        "llm-014",
        "004",
        "AnthropicProvider puts a stream back together when events "
        "arrive in pieces or over several data lines",
    ),
    Promise("llm-015", "004", "AnthropicProvider reports the usage of a streamed answer"),
    Promise("llm-016", "004", "AnthropicProvider maps the wire's stop reasons to ours"),
    Promise(
        "llm-017",
        "004",
        "AnthropicProvider turns error answers into ProviderError and retries the retryable ones",
    ),
    Promise(
        "llm-018",
        "004",
        "AnthropicProvider joins base URL and path correctly with and without a trailing slash",
    ),
    # llm (seed 004): streaming, usage, retries
    Promise(
        "llm-019",
        "004",
        "Provider.stream delivers the answer as text deltas from server-sent events",
    ),
    Promise("llm-020", "004", "A streamed call gives the complete response at its end as well"),
    Promise(
        "llm-021",
        "004",
        "A provider without streaming of its own falls back to one "
        "blocking call and delivers the text as one delta",
    ),
    Promise(
        "llm-022",
        "004",
        "OpenAIProvider asks for usage in a stream by stream_options.include_usage",
    ),
    Promise("llm-023", "004", "OpenAIProvider reads the usage from the last packet of a stream"),
    Promise(
        "llm-024",
        "004",
        "OpenAIProvider parses server-sent events into deltas and tool calls",
    ),
    Promise(
        "llm-025",
        "004",
        "Tool arguments that are not valid JSON do not break the parsing of an answer",
    ),
    Promise("llm-026", "004", "HTTP 429 is retried with back-off as RetryConfig says"),
    Promise("llm-027", "004", "HTTP 5xx is retried with back-off as RetryConfig says"),
    Promise("llm-028", "004", "A transport failure is retried with back-off as RetryConfig says"),
    Promise("llm-029", "004", "Once a delta was delivered, a failed stream is not replayed"),
    # llm (seed 004): HTTP transport
    Promise(
        "llm-030",
        "004",
        "HttpTransport is a protocol with post, streamed post and get, "
        "and a user's own transport can be injected",
    ),
    Promise("llm-031", "004", "The built-in HTTP transport carries requests without extra code"),
    Promise("llm-032", "004", "HttpTimeouts sets the connect timeout"),
    Promise("llm-033", "004", "HttpTimeouts sets the total timeout of a request"),
    Promise("llm-034", "004", "should_stop on a request breaks it off while it is in flight"),
    # llm (seed 004): structured output
    Promise(
        "llm-035",
        "004",
        "ChatOptions.response_schema becomes response_format with type "
        "json_schema on OpenAI-compatible endpoints",
        "tests/llm/test_response_format.py::test_a_response_schema_becomes_a_response_format",
    ),
    Promise(
        "llm-036",
        "004",
        "A provider of another kind ignores response_schema, and local "
        "check and repair still secure the result",
        "tests/llm/test_structured.py::test_a_provider_of_any_kind_is_given_the_schema_in_words_as_well",
    ),
    Promise(
        "llm-037",
        "004",
        "chat_structured checks the answer locally against the schema",
        "tests/llm/test_structured.py::test_a_valid_answer_gives_the_checked_value",
    ),
    Promise(
        "llm-038",
        "004",
        "chat_structured sends the violations back to the model and takes the repaired answer",
        "tests/llm/test_structured.py::test_violations_go_back_and_the_repaired_answer_is_taken",
    ),
    Promise(
        "llm-039",
        "004",
        "chat_structured makes no more than max_repair_rounds repair calls",
        "tests/llm/test_structured.py::test_a_hopeless_answer_ends_after_the_last_repair_with_its_violations",
    ),
    Promise(
        "llm-040",
        "004",
        "chat_structured with a valid answer gives ok and the checked value",
        "tests/llm/test_structured.py::test_a_valid_answer_gives_the_checked_value",
    ),
    Promise(
        "llm-041",
        "004",
        "chat_structured with a hopeless answer gives not ok and the violations",
        "tests/llm/test_structured.py::test_a_hopeless_answer_ends_after_the_last_repair_with_its_violations",
    ),
    Promise(
        "llm-042",
        "004",
        "A violation names the path of the value, such as $.user.age, and a message",
        "tests/llm/test_json_schema.py::test_a_violation_names_the_path_and_what_was_expected",
    ),
    Promise(
        "llm-043",
        "004",
        "JsonSchema.accepts tells whether a value passes",
        "tests/llm/test_json_schema.py::test_accepts_tells_whether_a_value_passes",
    ),
    Promise(
        "llm-044",
        "004",
        "JsonSchema checks local $ref",
        "tests/llm/test_json_schema.py::test_a_local_ref_is_followed_also_in_a_circle",
    ),
    Promise(
        "llm-045",
        "004",
        "JsonSchema checks $ref to outside documents the caller supplied",
        "tests/llm/test_json_schema.py::test_a_ref_reaches_the_documents_that_were_given",
    ),
    Promise(
        "llm-046",
        "004",
        "JsonSchema checks pattern",
        "tests/llm/test_json_schema.py::test_pattern_is_checked",
    ),
    Promise(
        "llm-047",
        "004",
        "JsonSchema checks patternProperties",
        "tests/llm/test_json_schema.py::test_pattern_properties_are_checked",
    ),
    Promise(
        "llm-048",
        "004",
        "JsonSchema checks if/then/else",
        "tests/llm/test_json_schema.py::test_if_then_else_are_checked",
    ),
    Promise(
        "llm-049",
        "004",
        "JsonSchema checks dependentRequired and the other dependency keywords",
        "tests/llm/test_json_schema.py::test_dependency_keywords_are_checked",
    ),
    Promise(
        "llm-050",
        "004",
        "JsonSchema checks format",
        "tests/llm/test_json_schema.py::test_format_is_checked",
    ),
    Promise(
        "llm-051",
        "004",
        "JsonSchema checks exclusive bounds",
        "tests/llm/test_json_schema.py::test_exclusive_bounds_are_checked_as_each_draft_writes_them",
    ),
    Promise(
        "llm-052",
        "004",
        "extract_json finds the JSON inside a ```json fence",
        "tests/llm/test_json_schema.py::test_json_is_found_inside_a_fence",
    ),
    Promise(
        "llm-053",
        "004",
        "extract_json finds the JSON between leading and trailing prose",
        "tests/llm/test_json_schema.py::test_json_is_found_between_prose",
    ),
    Promise(
        "llm-054",
        "004",
        "A structured answer can be parsed bit by bit while it streams",
        "tests/llm/test_structured_text.py::test_a_structured_answer_is_parsed_bit_by_bit_while_it_streams",
    ),
    Promise(
        "llm-055",
        "004",
        "ChatOptions.should_stop is asked before each call, and a stopped "
        "chat_structured makes no further request",
        "tests/llm/test_structured.py::test_a_stopped_call_makes_no_further_request",
    ),
    # agent (seed 004): qa::agent, tools and loop
    Promise(
        "agent-001",
        "004",
        "A tool is registered in a ToolRegistry with a JSON Schema of its parameters",
        "tests/tools/test_function.py::test_a_function_becomes_a_tool_with_a_schema_of_its_parameters",
    ),
    Promise(
        "agent-002",
        "004",
        "ReActAgent runs the tool a model calls, feeds the result back and goes on to the answer",
    ),
    Promise(
        "agent-003",
        "004",
        "A call of an unknown tool becomes an error observation and the loop goes on",
    ),
    Promise(
        "agent-004",
        "004",
        "An exception in a tool becomes an error observation and the loop goes on",
    ),
    Promise(
        "agent-005",
        "004",
        "ToolRegistry.execute checks the arguments against the tool's schema by default",
        "tests/tools/test_registry.py::test_bad_arguments_are_told_with_their_paths_and_the_tool_is_not_called",
    ),
    Promise(
        "agent-006",
        "004",
        "Bad arguments give an invalid_arguments observation and the tool is not called",
        "tests/tools/test_registry.py::test_bad_arguments_are_told_with_their_paths_and_the_tool_is_not_called",
    ),
    Promise(
        "agent-007",
        "004",
        "The observation for bad arguments names the tool and lists violations with their paths",
        "tests/tools/test_registry.py::test_bad_arguments_are_told_with_their_paths_and_the_tool_is_not_called",
    ),
    Promise(
        "agent-008",
        "004",
        "Argument checking is skipped only after an explicit set_validate_arguments(False)",
        "tests/tools/test_registry.py::test_the_check_is_left_out_only_when_that_is_said",
    ),
    Promise("agent-009", "004", "ReActAgent sends its system prompt with every model call"),
    Promise(
        "agent-010",
        "004",
        "ReActAgent makes no more model rounds than max_iterations and then ends unfinished",
    ),
    Promise("agent-011", "004", "AgentResult holds answer, events, usage and history"),
    Promise(
        "agent-012",
        "004",
        "A failed agent run has finished False with stop_reason and error set",
    ),
    # agent (seed 004): streaming, turns, history
    Promise(
        "agent-013",
        "004",
        "ReActAgent.run_stream passes on the answer's deltas as the provider streams them",
    ),
    Promise(
        "agent-014",
        "004",
        "ReActAgent.run_stream over a provider that cannot stream gives the answer in one piece",
    ),
    Promise(
        "agent-015",
        "004",
        "ReActAgent.continue_with carries the previous turn's history into a new question",
    ),
    Promise(
        "agent-016",
        "004",
        "ReActAgent.continue_with_stream does the same with streamed deltas",
    ),
    Promise("agent-017", "004", "An agent's history survives a round trip through JSON"),
    Promise("agent-018", "004", "HistoryLimits bounds what the model gets by number of messages"),
    Promise("agent-019", "004", "HistoryLimits bounds what the model gets by number of characters"),
    Promise("agent-020", "004", "Trimming always keeps the system message"),
    Promise("agent-021", "004", "Trimming always keeps the newest turn"),
    Promise("agent-022", "004", "Trimming never parts a tool call from its result"),
    Promise("agent-023", "004", "Trimming leaves the full history in AgentResult"),
    # agent (seed 004): tool execution policy
    Promise(
        "agent-024",
        "004",
        "ToolExecutionPolicy(parallel=True) runs the tool calls of one round at the same time",
        "tests/tools/test_execute_calls.py::test_the_calls_of_a_round_run_at_the_same_time_and_answer_in_their_order",
    ),
    Promise(
        "agent-025",
        "004",
        "ToolExecutionPolicy limits how many tools run at once",
        "tests/tools/test_execute_calls.py::test_no_more_calls_run_at_once_than_the_policy_lets",
    ),
    Promise("agent-026", "004", "With tools in parallel, history keeps the order of the calls"),
    Promise("agent-027", "004", "With tools in parallel, events keep a fixed order"),
    Promise(
        "agent-028",
        "004",
        "ToolExecutionPolicy.timeout_ms bounds each single tool call",
        "tests/tools/test_execute_calls.py::test_a_sync_tool_that_takes_too_long_is_told_as_timed_out_while_its_thread_still_blocks",
    ),
    Promise(
        "agent-029",
        "004",
        'A tool that times out gives an observation with error and "timeout": true',
        "tests/tools/test_execute_calls.py::test_a_sync_tool_that_takes_too_long_is_told_as_timed_out_while_its_thread_still_blocks",
    ),
    Promise(
        "agent-030",
        "004",
        "A tool that times out has its cancel() hook called",
        "tests/tools/test_execute_calls.py::test_a_tool_that_times_out_is_told_to_stop_in_both_ways",
    ),
    Promise(
        "agent-031",
        "004",
        "A tool that times out does not hold up the loop, even when its worker cannot be killed",
        "tests/tools/test_execute_calls.py::test_a_sync_tool_that_takes_too_long_is_told_as_timed_out_while_its_thread_still_blocks",
    ),
    Promise(
        "agent-032",
        "004",
        "A tool with run_with_cancel gets a should_stop predicate that turns true when it must end",
        "tests/tools/test_execute_calls.py::test_a_tool_that_times_out_is_told_to_stop_in_both_ways",
    ),
    # agent (seed 004): as a graph node
    Promise("agent-033", "004", "AgentNode runs an agent as a node of any graph"),
    Promise(
        "agent-034",
        "004",
        "AgentNode reads its question from and writes its answer to the channels it was given",
    ),
    Promise(
        "agent-035",
        "004",
        "AgentNode writes the channels answer, agent_history, "
        "agent_events, agent_usage and agent_stop_reason",
    ),
    Promise("agent-036", "004", "AgentNode with a history channel continues that conversation"),
    Promise("agent-037", "004", "AgentNode passes streamed deltas to its delta callback"),
    Promise(
        "agent-038",
        "004",
        "AgentNode whose loop did not finish returns a structured error to the engine",
    ),
    Promise(
        "agent-039",
        "004",
        "Cancelling or timing out the graph run reaches the loop inside AgentNode",
    ),
    Promise("agent-040", "004", "AgentObserver.on_tool_call is called for every tool call"),
    Promise("agent-041", "004", "AgentObserver.on_final is called with the final answer"),
    Promise("agent-042", "004", "An AgentObserver can be added to a ReActAgent"),
    Promise("agent-043", "004", "An AgentObserver can be added to an AgentNode"),
    Promise("agent-044", "004", "AgentObserver notices stay safe when tools run in parallel"),
    # mcp (seed 004): qa::mcp, client
    Promise(
        "mcp-001",
        "004",
        "MCPClient.initialize does the handshake and then sends notifications/initialized",
    ),
    Promise("mcp-002", "004", "MCPClient.list_tools follows nextCursor through all pages"),
    Promise("mcp-003", "004", "MCPClient.list_resources follows nextCursor through all pages"),
    Promise(
        "mcp-004",
        "004",
        "MCPClient.list_resource_templates follows nextCursor through all pages",
    ),
    Promise("mcp-005", "004", "MCPClient.list_prompts follows nextCursor through all pages"),
    Promise(
        "mcp-006",
        "004",
        "A server that repeats a cursor is detected instead of listed for ever",
    ),
    Promise("mcp-007", "004", "MCPClient.call_tool returns the raw CallToolResult"),
    Promise("mcp-008", "004", "MCPClient.read_resource reads a resource by its URI"),
    Promise("mcp-009", "004", "MCPClient.get_prompt gets a prompt by name with arguments"),
    Promise(
        "mcp-010",
        "004",
        "MCPClient's resources(), resource_templates() and prompts() give the server's lists",
    ),
    Promise("mcp-011", "004", "MCPClient can subscribe to a resource's updates"),
    Promise("mcp-012", "004", "MCPClient can unsubscribe from a resource's updates"),
    Promise("mcp-013", "004", "An error answer of the server reaches the caller as an error"),
    Promise("mcp-014", "004", "A request without an answer ends in a timeout error"),
    Promise("mcp-015", "004", "Server notices reach the handler given to set_notification_handler"),
    Promise(
        "mcp-016",
        "004",
        "tools_changed() turns true after notifications/tools/list_changed only",
    ),
    Promise(
        "mcp-017",
        "004",
        "resources_changed() turns true after notifications/resources/list_changed only",
    ),
    Promise(
        "mcp-018",
        "004",
        "prompts_changed() turns true after notifications/prompts/list_changed only",
    ),
    Promise("mcp-019", "004", "clear_list_changed(kind) resets that kind and leaves the others"),
    Promise(
        "mcp-020",
        "004",
        "tools() refreshes its cached list after the server announced a change",
    ),
    Promise(
        "mcp-021",
        "004",
        "Resources and prompts caches are refreshed after their own list_changed",
    ),
    # mcp (seed 004): tools bridge
    Promise("mcp-022", "004", "add_mcp_tools registers a server's tools once in a ToolRegistry"),
    Promise(
        "mcp-023",
        "004",
        "A tool registered by add_mcp_tools keeps the schema it had at registration",
    ),
    Promise(
        "mcp-024",
        "004",
        "A bridged MCP tool folds its result into text or structure the model can read",
    ),
    Promise("mcp-025", "004", "MCPToolSync.sync adds the tools that are new on the server"),
    Promise("mcp-026", "004", "MCPToolSync.sync updates the tools that changed on the server"),
    Promise("mcp-027", "004", "MCPToolSync.sync removes the tools that are gone from the server"),
    Promise("mcp-028", "004", "MCPToolSync never replaces or removes a tool it did not register"),
    Promise(
        "mcp-029",
        "004",
        "A foreign tool of the same name raises a collision error before the registry is touched",
    ),
    Promise("mcp-030", "004", "MCPToolSync puts its prefix before every tool name"),
    Promise(
        "mcp-031",
        "004",
        "One MCPToolSync kept for long brings the registry up to date when sync is "
        "called, outside the handler, after tools/list_changed",
    ),
    # mcp (seed 004): transports
    Promise(
        "mcp-032",
        "004",
        "The stdio transport runs a local server as a child process from command and arguments",
    ),
    Promise("mcp-033", "004", "A Python stdio server works end to end: handshake, listing, call"),
    Promise("mcp-034", "004", "The stdio transport keeps the child's stderr out of the protocol"),
    Promise(
        "mcp-035",
        "004",
        "Closing the stdio transport waits 1.5 s for the child and then terminates it",
    ),
    Promise("mcp-036", "004", "The streamable HTTP transport reads a plain JSON answer"),
    Promise(
        "mcp-037",
        "004",
        "The streamable HTTP transport reads an answer sent as an event stream",
    ),
    Promise("mcp-038", "004", "The streamable HTTP transport sends its bearer token"),
    Promise("mcp-039", "004", "The streamable HTTP transport sends its extra headers"),
    Promise(
        "mcp-040",
        "004",
        "The streamable HTTP transport keeps the server's session id on later requests",
    ),
    Promise(
        "mcp-041",
        "004",
        "The streamable HTTP transport sends the agreed protocol version header",
    ),
    Promise(
        "mcp-042",
        "004",
        "The streamable HTTP transport ends its session with DELETE when closed",
    ),
    Promise("mcp-043", "004", "The streamable HTTP transport takes an injected HTTP client"),
    Promise(
        "mcp-044",
        "004",
        "After initialize the transport opens the GET event stream when the "
        "server has tools, resources, prompts or logging",
    ),
    Promise(
        "mcp-045",
        "004",
        "A server with capabilities but none of tools, resources, prompts, logging gets no stream",
    ),
    Promise(
        "mcp-046",
        "004",
        "Empty capabilities count as unknown and the GET stream is still opened",
    ),
    Promise(
        "mcp-047",
        "004",
        "The subscribe option is on by default and switching it off opens no GET stream",
    ),
    Promise(
        "mcp-048",
        "004",
        "A dropped GET stream reconnects with exponential delays, reconnect_ms to max_reconnect_ms",
    ),
    Promise("mcp-049", "004", "A reconnect sends the last received event id as Last-Event-ID"),
    Promise(
        "mcp-050",
        "004",
        "404, 405 or 501 on the GET stream means unsupported and ends the attempts",
    ),
    Promise(
        "mcp-051",
        "004",
        "A user's own transport needs the Transport protocol only, one JSON-RPC message per line",
    ),
    Promise(
        "mcp-052",
        "004",
        "The in-memory transport connects a client offline inside one process",
    ),
    # rag (seed 004): qa::rag, loading documents
    Promise(
        "rag-001",
        "004",
        "load_document loads a web page by URL and strips its HTML by itself",
    ),
    Promise("rag-002", "004", "load_document loads a directory with all its sub-directories"),
    Promise("rag-003", "004", "load_document loads a .pdf file"),
    Promise("rag-004", "004", "load_document loads a .docx file"),
    Promise("rag-005", "004", "load_document loads a .html file with its tags stripped"),
    Promise("rag-006", "004", "load_document loads a .txt file"),
    Promise("rag-007", "004", "load_document loads a .md file"),
    Promise("rag-008", "004", "load_document loads a .jsonl file"),
    Promise("rag-009", "004", "load_document loads a .csv file"),
    Promise("rag-010", "004", "load_document loads a .log file"),
    Promise(
        "rag-011",
        "004",
        "load_document picks the loader by kind of source and file extension",
    ),
    Promise("rag-012", "004", "The documents of a directory come sorted by path"),
    Promise(
        "rag-013",
        "004",
        "A document's id is its absolute normalised path, so files of "
        "the same name do not overwrite each other",
    ),
    Promise("rag-014", "004", "Documents load from Chinese and other non-ASCII paths"),
    Promise("rag-015", "004", "JSON index files work on Chinese and other non-ASCII paths"),
    Promise("rag-016", "004", "A user's own DocumentLoader takes the place of a built-in one"),
    Promise("rag-017", "004", "The PDF, DOCX and HTML file loaders take an injected extractor"),
    Promise("rag-018", "004", "UrlLoader takes an injected fetcher and extractor"),
    Promise("rag-019", "004", "LoadOptions.metadata is put on every loaded document"),
    Promise(
        "rag-020",
        "004",
        "LoadOptions.html_parser replaces the HTML extractor, also through load_document",
    ),
    Promise("rag-021", "004", "LoadOptions.url_policy governs the fetching of URLs"),
    Promise(
        "rag-022",
        "004",
        "LoadOptions.extractor_timeout_ms bounds the time of a PDF or DOCX extractor",
    ),
    Promise(
        "rag-023",
        "004",
        "LoadOptions.extractor_limits bounds the resources of a PDF or DOCX extractor",
    ),
    Promise("rag-024", "004", "LoadOptions.max_source_bytes refuses a bigger source"),
    Promise("rag-025", "004", "LoadOptions.max_extracted_bytes refuses a bigger extracted text"),
    Promise(
        "rag-026",
        "004",
        "The built-in PDF and DOCX extractors run as child processes "
        "started from an argument list, without a shell",
    ),
    Promise(
        "rag-027",
        "004",
        "An extractor that exceeds its time has its whole process tree ended",
    ),
    Promise(
        "rag-028",
        "004",
        "An extractor that exceeds its output limit has its whole process tree ended",
    ),
    Promise(
        "rag-029",
        "004",
        "An extractor's memory and CPU are limited by the operating system (rlimit or job object)",
    ),
    Promise("rag-030", "004", "html_to_text drops comments"),
    Promise("rag-031", "004", "html_to_text drops script blocks"),
    Promise("rag-032", "004", "html_to_text is not misled by tags inside quoted attributes"),
    Promise("rag-033", "004", "html_to_text decodes numeric entities"),
    Promise("rag-034", "004", "html_to_text decodes named entities"),
    # rag (seed 004): fetching URLs
    Promise("rag-035", "004", "UrlLoader fetches http and https only"),
    Promise("rag-036", "004", "UrlLoader refuses a URL with control characters"),
    Promise("rag-037", "004", "UrlLoader refuses a URL with whitespace"),
    Promise("rag-038", "004", "UrlLoader refuses a URL with a backslash"),
    Promise("rag-039", "004", "UrlLoader refuses loopback addresses"),
    Promise("rag-040", "004", "UrlLoader refuses private addresses"),
    Promise("rag-041", "004", "UrlLoader refuses link-local addresses"),
    Promise("rag-042", "004", "UrlPolicy relaxes a refusal only when it is passed in explicitly"),
    Promise("rag-043", "004", "UrlLoader resolves names by the system's DNS unless told otherwise"),
    Promise("rag-044", "004", "Every address a name resolves to is checked"),
    Promise("rag-045", "004", "The connection goes to the very address that was checked"),
    Promise(
        "rag-046",
        "004",
        "With a pinned address the Host header and TLS server name stay those of the URL",
    ),
    Promise("rag-047", "004", "The peer actually connected to must be the pinned address"),
    Promise("rag-048", "004", "Every redirect hop is checked again"),
    Promise("rag-049", "004", "UrlLoader itself follows redirects, one hop at a time"),
    Promise("rag-050", "004", "A redirect from https to http is refused by default"),
    Promise("rag-051", "004", "The Content-Type of a response is checked"),
    Promise("rag-052", "004", "The size of the body actually received is checked"),
    Promise("rag-053", "004", "System proxies are not used by default"),
    Promise("rag-054", "004", "Where an address cannot be pinned the fetch is refused"),
    Promise(
        "rag-055",
        "004",
        "make_http_fetcher checks hops, peer address, Content-Type and size in the same way",
    ),
    Promise(
        "rag-056",
        "004",
        "A user's own UrlFetcher gets the checked UrlResolution and has to confirm dns_pinned",
    ),
    # rag (seed 004): chunks and embeddings
    Promise(
        "rag-057",
        "004",
        "SlidingWindowChunker cuts text into windows of the given size and overlap",
    ),
    Promise("rag-058", "004", "SlidingWindowChunker can back off to a sentence end"),
    Promise("rag-059", "004", "SlidingWindowChunker never cuts inside a character"),
    Promise("rag-060", "004", "A user's own Chunker works in ingestion"),
    Promise("rag-061", "004", "A user's own Embedder works in ingestion and search"),
    Promise(
        "rag-062",
        "004",
        "HashEmbedder works offline and gives the same vector for the same text every time",
    ),
    Promise("rag-063", "004", "OpenAIEmbedder splits many texts into several requests"),
    Promise("rag-064", "004", "OpenAIEmbedder retries 429 and 5xx with back-off"),
    Promise("rag-065", "004", "OpenAIEmbedder takes HashEmbedder's place without other changes"),
    # rag (seed 004): index manifest
    Promise(
        "rag-066",
        "004",
        "IndexManifest records embedder, model, dimension and chunker signature",
    ),
    Promise("rag-067", "004", "ingest_documents and replace_documents write the index's manifest"),
    Promise("rag-068", "004", "The manifest is stored in the JSON index and read back"),
    Promise("rag-069", "004", "Writing or loading is allowed only when the manifest agrees"),
    Promise(
        "rag-070",
        "004",
        "Another embedder than the manifest's is refused, asking for a rebuild",
    ),
    Promise("rag-071", "004", "Another model than the manifest's is refused, asking for a rebuild"),
    Promise(
        "rag-072",
        "004",
        "Another dimension than the manifest's is refused, asking for a rebuild",
    ),
    Promise(
        "rag-073",
        "004",
        "Another chunker signature than the manifest's is refused, asking for a rebuild",
    ),
    Promise("rag-074", "004", "An old index with data but no manifest is refused"),
    Promise(
        "rag-075",
        "004",
        "A user's own Embedder takes part in the manifest through id() and model()",
    ),
    Promise(
        "rag-076",
        "004",
        "A user's own Chunker takes part in the manifest through signature()",
    ),
    # rag (seed 004): vector store
    Promise("rag-077", "004", "Adding a chunk with a known non-empty id replaces the stored one"),
    Promise("rag-078", "004", "Adding by id takes the same time however large the store is"),
    Promise("rag-079", "004", "remove deletes one chunk by id"),
    Promise("rag-080", "004", "remove_document deletes all chunks of a document"),
    Promise("rag-081", "004", "replace_document swaps a document's chunks in one step"),
    Promise("rag-082", "004", "search returns the k most relevant chunks, best first"),
    Promise("rag-083", "004", "search returns nothing below min_score"),
    Promise("rag-084", "004", "search returns only chunks its ChunkFilter accepts"),
    Promise("rag-085", "004", "Top-k search finds the same hits as a full scan"),
    Promise("rag-086", "004", "Cached vector norms stay right after adding, updating and removing"),
    Promise("rag-087", "004", "Search copies the hit records only"),
    Promise("rag-088", "004", "InMemoryVectorStore can be used from several threads at once"),
    Promise(
        "rag-089",
        "004",
        "The index is saved by writing a temporary file and replacing the old one",
    ),
    Promise("rag-090", "004", "A load that fails leaves the current index as it was"),
    Promise("rag-091", "004", "An index survives saving to JSON and loading"),
    Promise("rag-092", "004", "A chunk with empty metadata comes back with empty metadata"),
    Promise("rag-093", "004", "JSON lines written by an older version still load"),
    Promise("rag-094", "004", "A user's own VectorStore needs add, search, size and clear only"),
    Promise(
        "rag-095",
        "004",
        "A user's own VectorStore works unchanged in RetrieveNode, ingestion and the query graph",
    ),
    Promise(
        "rag-096",
        "004",
        "An InMemoryVectorStore with overridden save and load persists elsewhere",
    ),
    Promise(
        "rag-097",
        "004",
        "The vector store returns raw neighbours; repeats and diversity are the reranker's work",
    ),
    Promise("rag-098", "004", "VectorStore.replace_documents swaps several documents in one step"),
    Promise(
        "rag-099",
        "004",
        "VectorStore.replace_documents checks all first and changes nothing when one part is bad",
    ),
    # rag (seed 004): ingestion
    Promise("rag-100", "004", "ingest_documents adds documents to an existing index"),
    Promise(
        "rag-101",
        "004",
        "replace_documents chunks, embeds and checks a document before its old chunks go",
    ),
    Promise("rag-102", "004", "replace_documents replaces each document as a whole"),
    Promise(
        "rag-103",
        "004",
        "A document that fails in replace_documents does not hinder the others",
    ),
    Promise("rag-104", "004", "A failed replacement leaves the document's old chunks in place"),
    # rag (seed 004): retrieval and answers
    Promise("rag-105", "004", "MMRReranker gives more diverse hits than pure relevance"),
    Promise("rag-106", "004", "A user's own Reranker takes MMRReranker's place"),
    Promise("rag-107", "004", "RetrieveNode fetches k hits"),
    Promise("rag-108", "004", "rerank_lambda 1 means pure relevance"),
    Promise("rag-109", "004", "candidate_pool sets how many candidates go into the reranker"),
    Promise("rag-110", "004", "build_rag_query_graph runs retrieve, build_context, answer"),
    Promise(
        "rag-111",
        "004",
        "build_rag_query_graph returns a GraphBuilder open to more nodes, edges and observers",
    ),
    Promise(
        "rag-112",
        "004",
        "The query graph's state ends with chunks, context, answer, "
        "context_sources, answer_sources, answer_cited and rag_history",
    ),
    Promise("rag-113", "004", "BuildContextNode numbers the context and writes context_sources"),
    Promise("rag-114", "004", "AnswerNode streams the answer's deltas"),
    Promise(
        "rag-115",
        "004",
        "AnswerNode reads the [n] citations out of the answer and lists each number once",
    ),
    Promise("rag-116", "004", "AnswerNode drops citation numbers outside the retrieved range"),
    Promise(
        "rag-117",
        "004",
        "answer_sources holds the sources really cited, each with id, doc_id, text and score",
    ),
    Promise(
        "rag-118",
        "004",
        "answer_cited_indexes holds distinct numbers within the retrieved range only",
    ),
    Promise(
        "rag-119",
        "004",
        "AnswerNode uses an earlier rag_history as context of a follow-up question",
    ),
    Promise("rag-120", "004", "rag_history grows by this turn's user and assistant messages"),
    Promise(
        "rag-121",
        "004",
        "The names of history, sources and chunks channels can be changed in AnswerNode's config",
    ),
    Promise("rag-122", "004", "AnswerNode's config sets model and max_tokens of the answer call"),
    Promise(
        "rag-123",
        "004",
        "When the model fails AnswerNode returns a structured error and no made-up answer",
    ),
    # service (seed 004): rag_service
    Promise(
        "service-001",
        "004",
        "dialoom rag runs as a process that reads and writes JSON lines on stdio",
    ),
    Promise("service-002", "004", "Every request and every response is one line of JSON"),
    Promise(
        "service-003",
        "004",
        "--offline answers by extracting from the sources with HashEmbedder and no network",
    ),
    Promise(
        "service-004",
        "004",
        "--config picks the answering provider, openai or anthropic, from the config file",
    ),
    Promise(
        "service-005",
        "004",
        "Anthropic without embedding_base_url uses HashEmbedder and says so on stderr only",
    ),
    Promise("service-006", "004", "op health reports the service's state"),
    Promise("service-007", "004", "op ingest takes paths and a replace flag"),
    Promise("service-008", "004", "op query answers a question"),
    Promise("service-009", "004", "op shutdown ends the process"),
    Promise(
        "service-010",
        "004",
        'A streamed query gives zero or more {"event": "delta", "text"} lines before its final one',
    ),
    Promise("service-011", "004", 'A query ends with exactly one {"event": "final"} line'),
    Promise(
        "service-012",
        "004",
        "The final line holds answer, sources, cited_sources, cited_indexes, "
        "usage, stop_reason and the run_id of its run",
    ),
    Promise(
        "service-013",
        "004",
        "Queries with one session_id share their history within the process",
    ),
    Promise("service-014", "004", "A session keeps its latest 40 messages"),
    Promise("service-015", "004", "At start the index given by --index is loaded"),
    Promise(
        "service-016",
        "004",
        "With no index yet and --docs given, the first ingestion runs by itself and is saved",
    ),
    Promise(
        "service-017",
        "004",
        "A manifest that does not agree with the current embedder and chunker refuses the start",
    ),
    Promise(
        "service-018",
        "004",
        "With a token set, every request has to carry it as its auth string",
    ),
    Promise("service-019", "004", "The token comes from --auth-token or from the environment"),
    Promise("service-020", "004", "The token is compared in constant time"),
    Promise(
        "service-021",
        "004",
        'A wrong or missing token gets {"ok": false, "error": "unauthorized"}',
    ),
    Promise(
        "service-022",
        "004",
        "--read-only or its environment variable makes the process a read-only replica",
    ),
    Promise("service-023", "004", "A read-only replica refuses ingest"),
    Promise("service-024", "004", "A read-only replica needs an existing index"),
    Promise(
        "service-025",
        "004",
        "A read-only replica can share the index file a writing process made",
    ),
    Promise("service-026", "004", "--read-only and --docs exclude each other"),
    Promise("service-027", "004", "A read-only replica never changes a byte of the index file"),
    Promise("service-028", "004", "health reports auth_required and read_only"),
    Promise("service-029", "004", "--timeout-ms is the deadline of each query's run"),
    Promise("service-030", "004", "Every response carries the id of its request"),
    Promise(
        "service-031",
        "004",
        'An error is answered with {"ok": false, "error"} and the process lives on',
    ),
    Promise(
        "service-032",
        "004",
        "A piped health, query, shutdown session works offline and leaves the index on disk",
    ),
    # triage (seed 004): support_agent_demo, set-up
    Promise("triage-001", "004", "dialoom triage reads JSONL tickets with id and text"),
    Promise(
        "triage-002",
        "004",
        "dialoom triage reads JSONL cases with id, category, title, text and resolution",
    ),
    Promise("triage-003", "004", "Ticket and case files may also be one JSON array"),
    Promise("triage-004", "004", "--offline runs the whole triage without network"),
    Promise(
        "triage-005",
        "004",
        "Without a usable config the triage runs without a model, by keywords and templates",
    ),
    Promise("triage-006", "004", "--top-k sets the number of retrieved cases"),
    Promise("triage-007", "004", "--concurrency sets how many tickets are worked on at once"),
    Promise("triage-008", "004", "--config names the config file"),
    Promise("triage-009", "004", "--tickets, --cases and --out choose the input and output files"),
    Promise(
        "triage-010",
        "004",
        "provider anthropic in the config selects AnthropicProvider, else OpenAIProvider",
    ),
    Promise("triage-011", "004", "The provider gets the timeouts and retries of the config"),
    Promise(
        "triage-012",
        "004",
        "Without embedding_model HashEmbedder embeds the cases, offline from character trigrams",
    ),
    Promise("triage-013", "004", "With embedding_model the cases are embedded by OpenAIEmbedder"),
    Promise(
        "triage-014",
        "004",
        "When remote embedding fails, HashEmbedder takes over and the case index is built again",
    ),
    # triage (seed 004): the pipeline
    Promise("triage-015", "004", "The triage graph runs load, prepare, process, persist"),
    Promise("triage-016", "004", "load drops invalid tickets and repeated ids"),
    Promise(
        "triage-017",
        "004",
        "A malformed ticket or case line, or a repeated ticket id, is skipped with a warning",
    ),
    Promise("triage-018", "004", "load fails when no valid ticket is left"),
    Promise("triage-019", "004", "prepare embeds all ticket texts in a batch and writes query_vec"),
    Promise("triage-020", "004", "process works on the tickets as a MapNode"),
    Promise("triage-021", "004", "Each ticket searches the case index for its top_k cases"),
    Promise(
        "triage-022",
        "004",
        "The prompt of a ticket holds the ticket and the hit cases with problem and resolution",
    ),
    Promise(
        "triage-023",
        "004",
        "The model is asked for category, priority, reply and citations as JSON",
    ),
    Promise(
        "triage-024",
        "004",
        "A valid model answer gives the ticket's category, priority and reply",
    ),
    Promise("triage-025", "004", "A model timeout, 429 or 5xx is retried as the config says"),
    Promise(
        "triage-026",
        "004",
        "A model that still fails after its retries puts that ticket on the fallback",
    ),
    Promise(
        "triage-027",
        "004",
        "An answer that is not JSON is dropped for keyword category and case template reply",
    ),
    Promise(
        "triage-028",
        "004",
        "An answer with invalid fields is dropped for keyword category and case template reply",
    ),
    Promise("triage-029", "004", "The fallback also sets a priority by keywords"),
    Promise("triage-030", "004", "A fallback ticket records the reason in its note"),
    Promise("triage-031", "004", "Citations of cases that were not retrieved are removed"),
    Promise(
        "triage-032",
        "004",
        "Without a valid citation the first two retrieved cases are cited",
    ),
    Promise(
        "triage-033",
        "004",
        "persist sums up and writes the result file by temporary file and rename",
    ),
    Promise(
        "triage-034",
        "004",
        "A result file that cannot be written gives a structured error and stop_reason error",
    ),
    Promise(
        "triage-035",
        "004",
        "Each ticket's result holds category, priority, reply, citations, retrieved and usage",
    ),
    Promise(
        "triage-036",
        "004",
        "Each ticket's result says whether model or fallback gave it, in source",
    ),
    Promise(
        "triage-037",
        "004",
        "The result file holds mode, model, embedder, summary and tickets",
    ),
    Promise("triage-038", "004", "At the end the triage names its result file to the user"),
    # dialog (seed 000): Visindigo::Agent::Dialog, identity and ownership
    Promise(
        "dialog-001",
        "000",
        "A Dialog holds its messages, its own skills, MCP servers, tools and "
        "prompts, and its choice of provider and model",
    ),
    Promise("dialog-002", "000", "A Dialog is empty when made and has a UUID at once"),
    Promise(
        "dialog-003",
        "000",
        "A Dialog's id does not change after construction, whatever is done except from_dict",
    ),
    Promise(
        "dialog-004",
        "000",
        "The dialog id is also the Center's key and the id of the stored conversation",
    ),
    Promise(
        "dialog-005",
        "000",
        "A Dialog belongs to its Center and ends through "
        "Center.remove_dialog, which takes it out of the Center's table",
    ),
    Promise("dialog-006", "000", "Closing a Dialog breaks off a request still going on"),
    Promise("dialog-007", "000", "Closing a Dialog lets go of the tools only it held"),
    Promise(
        "dialog-008",
        "000",
        "Closing a Dialog directly does not take it out of the Center's table",
    ),
    # dialog (seed 000): kit (tools, MCP servers, prompts, skills)
    Promise("dialog-009", "000", "add_tool gives the dialog a tool of its own"),
    Promise(
        "dialog-010",
        "000",
        "add_tool with a name already there replaces the old tool and lets it go",
    ),
    Promise("dialog-011", "000", "add_tool with None does nothing"),
    Promise(
        "dialog-012",
        "000",
        "add_mcp adds a server config, over the Center's config of the same name",
    ),
    Promise(
        "dialog-013",
        "000",
        "add_prompt adds a template, over the Center's template of the same name",
    ),
    Promise(
        "dialog-014",
        "000",
        "add_skill adds a skill, over the Center's skill of the same name",
    ),
    Promise("dialog-015", "000", "remove_tool takes the dialog's own tool away"),
    Promise(
        "dialog-016",
        "000",
        "After remove_tool the Center's tool of that name is in force again",
    ),
    Promise(
        "dialog-017",
        "000",
        "remove_mcp takes the dialog's own server config of that name away",
    ),
    Promise("dialog-018", "000", "remove_prompt takes the dialog's own template of that name away"),
    Promise("dialog-019", "000", "remove_skill takes the dialog's own skill of that name away"),
    Promise(
        "dialog-020",
        "000",
        "After remove_skill the Center's skill of that name is in force again",
    ),
    Promise("dialog-021", "000", "get_tool looks in the dialog first and then in the Center"),
    Promise("dialog-022", "000", "get_tool gives None for a name neither has"),
    Promise("dialog-023", "000", "tool_names lists the dialog's own tools only, not the Center's"),
    Promise("dialog-024", "000", "mcps lists the dialog's own server configs"),
    Promise("dialog-025", "000", "prompts lists the dialog's own templates"),
    Promise("dialog-026", "000", "skills lists the dialog's own skills only, not the Center's"),
    Promise(
        "dialog-027",
        "000",
        "In a run the dialog's own items override the Center's of the same name",
    ),
    Promise(
        "dialog-028",
        "000",
        "A skill can be hung on one dialog without removing the Center's skill of that name",
    ),
    Promise(
        "dialog-029",
        "000",
        "A tool registered in the Center is found by name from every dialog",
    ),
    Promise(
        "dialog-030",
        "000",
        "add_, remove_, append_ and set_ calls return the dialog, so calls can be chained",
    ),
    # dialog (seed 000): messages
    Promise("dialog-031", "000", "append_message appends a message"),
    Promise("dialog-032", "000", "append_message emits message_appended"),
    Promise("dialog-033", "000", "append_message also takes a role and a text"),
    Promise(
        "dialog-034",
        "000",
        "append_prompt finds a template, fills in its variables and appends it as one message",
    ),
    Promise("dialog-035", "000", "append_prompt with an unknown name does nothing"),
    Promise("dialog-036", "000", "append_prompt looks in the dialog first and then in the Center"),
    Promise("dialog-037", "000", "clear_messages removes all messages"),
    Promise("dialog-038", "000", "clear_messages keeps skills, tools and model choice"),
    Promise(
        "dialog-039",
        "000",
        "find_last_assistant_message gives the index of the newest assistant message",
    ),
    Promise("dialog-040", "000", "find_last_assistant_message gives -1 when there is none"),
    Promise(
        "dialog-041",
        "000",
        "truncate_to(find_last_assistant_message()) drops exactly that "
        "answer and all after it, ready to regenerate",
    ),
    Promise("dialog-042", "000", "last_message gives the newest message"),
    Promise("dialog-043", "000", "last_message gives an empty message when there is none"),
    Promise("dialog-044", "000", "message_count gives the number of messages"),
    Promise("dialog-045", "000", "messages gives all messages in order of time"),
    Promise("dialog-046", "000", "truncate_to(n) keeps the first n messages and drops the rest"),
    Promise("dialog-047", "000", "truncate_to with more than there are does nothing"),
    Promise("dialog-048", "000", "truncate_to(0) removes all messages"),
    Promise(
        "dialog-049",
        "000",
        "message_appended carries the index of the new message in messages",
    ),
    Promise(
        "dialog-050",
        "000",
        "message_appended carries no copy: a listener reads the message at that index as it is now",
    ),
    # dialog (seed 000): streaming
    Promise("dialog-051", "000", "begin_assistant_message clears the stream buffer"),
    Promise("dialog-052", "000", "begin_assistant_message emits stream_began"),
    Promise("dialog-053", "000", "append_delta adds to the stream buffer"),
    Promise("dialog-054", "000", "append_delta emits stream_delta"),
    Promise(
        "dialog-055",
        "000",
        "A delta may cut a character or Markdown in two; only the gathered text is parsed",
    ),
    Promise(
        "dialog-056",
        "000",
        "begin_assistant_message, append_delta and end_assistant_message "
        "serve a host with its own transport, without run",
    ),
    Promise(
        "dialog-057",
        "000",
        "end_assistant_message appends the buffer as one assistant message at the end",
    ),
    Promise("dialog-058", "000", "end_assistant_message emits message_appended and stream_ended"),
    Promise("dialog-059", "000", "end_assistant_message with an empty buffer appends nothing"),
    Promise(
        "dialog-060",
        "000",
        "end_assistant_message with an empty buffer still emits stream_ended",
    ),
    Promise(
        "dialog-061",
        "000",
        "end_assistant_message stores the reasoning in that message before the buffer is cleared",
    ),
    Promise(
        "dialog-062",
        "000",
        "Every round's reasoning can still be read in the stored messages",
    ),
    Promise(
        "dialog-063",
        "000",
        "reasoning_content gives the reasoning of the current generation while it comes in",
    ),
    Promise("dialog-064", "000", "reasoning_content is cleared by each begin_assistant_message"),
    Promise(
        "dialog-065",
        "000",
        "Reasoning is not part of the answer and is not sent back in the next turn",
    ),
    Promise(
        "dialog-066",
        "000",
        "stream_reasoning carries reasoning deltas, apart from stream_delta",
    ),
    Promise("dialog-067", "000", "stream_reasoning comes from reasoning models only"),
    Promise(
        "dialog-068",
        "000",
        "streaming_content gives the text received so far and not yet closed",
    ),
    Promise(
        "dialog-069",
        "000",
        "is_streaming is true while an answer comes in and false otherwise",
    ),
    Promise("dialog-070", "000", "stream_began starts a round, before any delta of that round"),
    Promise("dialog-071", "000", "stream_delta carries only the newly arrived piece of the answer"),
    Promise("dialog-072", "000", "stream_ended carries the whole text of the round's answer"),
    # dialog (seed 000): run
    Promise(
        "dialog-073",
        "000",
        "run sends the current messages and emits what streams back as signals",
    ),
    Promise(
        "dialog-074",
        "000",
        "run resolves provider and model and builds the request: system "
        "text from skills, messages, tool specs",
    ),
    Promise(
        "dialog-075",
        "000",
        "Text deltas are emitted by stream_delta while the answer still streams",
    ),
    Promise("dialog-076", "000", "run drives begin, deltas and end of each round by itself"),
    Promise(
        "dialog-077",
        "000",
        "Tools the model asks for run by themselves; their results come in the order of the calls",
    ),
    Promise("dialog-078", "000", "Each tool result is appended as a message of role tool"),
    Promise(
        "dialog-079",
        "000",
        "After tool results another round is sent by itself, until an answer without tool calls",
    ),
    Promise(
        "dialog-080",
        "000",
        "A round with tool calls is followed by the next, so one run may emit "
        "stream_began and stream_ended several times",
    ),
    Promise("dialog-081", "000", "run returns as soon as it has started; the result comes later"),
    Promise("dialog-082", "000", "A run that ends well emits stream_ended"),
    Promise("dialog-083", "000", "A run that fails emits run_failed"),
    Promise("dialog-084", "000", "After run_failed there is no stream_ended"),
    Promise(
        "dialog-085",
        "000",
        "run_failed carries a reason that can be shown to the user as it is",
    ),
    Promise("dialog-086", "000", "Only one run goes on at a time in a dialog"),
    Promise(
        "dialog-087",
        "000",
        "A second run while one is going emits run_failed at once and is not queued",
    ),
    Promise(
        "dialog-088",
        "000",
        "A second run that was refused leaves the log of the first run whole",
    ),
    # dialog (seed 000): provider and model choice
    Promise("dialog-089", "000", "provider_id gives the chosen provider, or an empty text"),
    Promise("dialog-090", "000", "set_provider_id chooses the provider of this dialog"),
    Promise("dialog-091", "000", "Without provider_id the Center's default provider is used"),
    Promise("dialog-092", "000", "model_id gives the chosen model, or an empty text"),
    Promise("dialog-093", "000", "set_model_id chooses the model of this dialog"),
    Promise(
        "dialog-094",
        "000",
        "Without model_id the provider picks a model by the capability requirement",
    ),
    Promise(
        "dialog-095",
        "000",
        "An unusable chosen model makes the provider pick one by the capability requirement",
    ),
    Promise(
        "dialog-096",
        "000",
        "capability_requirement gives the least capabilities a model must have",
    ),
    Promise("dialog-097", "000", "The default capability requirement is text"),
    Promise("dialog-098", "000", "Several capabilities are combined by bitwise or"),
    Promise(
        "dialog-099",
        "000",
        "With text and image required, models without image input are "
        "skipped instead of being sent the image",
    ),
    # dialog (seed 000): branches, copies, storage
    Promise(
        "dialog-100",
        "000",
        "branch_from_id gives the id this dialog came from, or an empty text",
    ),
    Promise("dialog-101", "000", "set_branch_from_id records which dialog this one replaces"),
    Promise(
        "dialog-102",
        "000",
        "Regenerating makes a new dialog that points at the one it replaces; no tree is kept",
    ),
    Promise("dialog-103", "000", "copy_to copies messages"),
    Promise("dialog-104", "000", "copy_to copies skills, MCP servers and prompts"),
    Promise(
        "dialog-105",
        "000",
        "copy_to copies provider choice, model choice and capability requirement",
    ),
    Promise("dialog-106", "000", "copy_to leaves the target its own id"),
    Promise("dialog-107", "000", "copy_to copies no tools"),
    Promise("dialog-108", "000", "copy_to leaves the target's own tools as they were"),
    Promise("dialog-109", "000", "copy_to gives true when it copied"),
    Promise("dialog-110", "000", "copy_to gives false for no target"),
    Promise("dialog-111", "000", "copy_to gives false for the dialog itself"),
    Promise(
        "dialog-112",
        "000",
        "to_dict holds id, branch origin, model choice, capability requirement and messages",
    ),
    Promise("dialog-113", "000", "to_dict holds the dialog's own skills, MCP servers and prompts"),
    Promise("dialog-114", "000", "to_dict holds no tools"),
    Promise("dialog-115", "000", "from_dict restores a dialog from its dict"),
    Promise(
        "dialog-116",
        "000",
        "from_dict restores the stored id, the only way to set a dialog's id",
    ),
    Promise("dialog-117", "000", "from_dict without an id keeps the current id"),
    Promise("dialog-118", "000", "from_dict tells whether it restored an id"),
    Promise(
        "dialog-119",
        "000",
        "After from_dict a tool not added again is answered to the model as an unknown tool",
    ),
    # mcpconfig (seed 002): Visindigo::Agent::MCP
    Promise(
        "mcpconfig-001",
        "002",
        "MCPServerConfig holds how to reach a tool server: transport, "
        "address or command, environment and headers",
    ),
    Promise(
        "mcpconfig-002",
        "002",
        "A connected server's tools become Tools and are called on the same path as local ones",
    ),
    Promise(
        "mcpconfig-003",
        "002",
        "The stored fields are fixed: adding real connections needs no change of the config format",
    ),
    Promise(
        "mcpconfig-004",
        "002",
        "Transport has the values STDIO 0, SSE 1 and STREAMABLE_HTTP 2",
    ),
    Promise(
        "mcpconfig-005",
        "002",
        "Transport.STDIO starts a local server as a child process and exchanges "
        "line-separated JSON-RPC on its standard streams",
    ),
    Promise(
        "mcpconfig-006",
        "002",
        "Transport.SSE receives by server-sent events and sends requests by HTTP POST",
    ),
    Promise(
        "mcpconfig-007",
        "002",
        "Transport.STREAMABLE_HTTP does all traffic on one HTTP "
        "endpoint, answered by JSON or an event stream",
    ),
    Promise("mcpconfig-008", "002", "MCPServerConfig() is empty and uses Transport.STDIO"),
    Promise("mcpconfig-009", "002", "MCPServerConfig(name) sets the name, which is also its key"),
    Promise("mcpconfig-010", "002", "from_dict restores a config from its dict"),
    Promise("mcpconfig-011", "002", "from_dict reads an unknown transport as Transport.STDIO"),
    Promise("mcpconfig-012", "002", "from_dict of an unknown transport keeps both command and url"),
    Promise("mcpconfig-013", "002", "Extra fields of a config file are not lost by loading it"),
    Promise(
        "mcpconfig-014",
        "002",
        "from_dict tells whether the restored config is valid, by the rule of is_valid",
    ),
    Promise("mcpconfig-015", "002", "The arguments property gives the launch arguments"),
    Promise("mcpconfig-016", "002", "The command property gives the executable to launch"),
    Promise(
        "mcpconfig-017",
        "002",
        "The environment property gives the added environment variables",
    ),
    Promise("mcpconfig-018", "002", "The headers property gives the extra request headers"),
    Promise("mcpconfig-019", "002", "The name property gives the name"),
    Promise("mcpconfig-020", "002", "The transport property gives the transport"),
    Promise("mcpconfig-021", "002", "The url property gives the remote address"),
    Promise(
        "mcpconfig-022",
        "002",
        "The auto_start property tells whether the server connects at start",
    ),
    Promise("mcpconfig-023", "002", "The enabled property tells whether the config is enabled"),
    Promise("mcpconfig-024", "002", "is_valid is false for an empty name"),
    Promise("mcpconfig-025", "002", "is_valid for Transport.STDIO needs a command"),
    Promise(
        "mcpconfig-026",
        "002",
        "is_valid for the remote transports needs a valid absolute URL",
    ),
    Promise(
        "mcpconfig-027",
        "002",
        "Arguments reach the child one by one without a shell; spaces in a path need no quoting",
    ),
    Promise("mcpconfig-028", "002", "auto_start is on by default"),
    Promise("mcpconfig-029", "002", "A server with auto_start off is connected on demand"),
    Promise("mcpconfig-030", "002", "command has a meaning for Transport.STDIO only"),
    Promise(
        "mcpconfig-031",
        "002",
        "command is run as a program, so it is taken from the user's own config "
        "only, never from network content or project files",
    ),
    Promise("mcpconfig-032", "002", "enabled is on by default"),
    Promise("mcpconfig-033", "002", "A disabled config takes no part in connecting"),
    Promise(
        "mcpconfig-034",
        "002",
        "environment adds to the child's variables; names not listed are inherited",
    ),
    Promise("mcpconfig-035", "002", "headers go with remote requests, such as for authorisation"),
    Promise(
        "mcpconfig-036",
        "002",
        "A config of the same name replaces the other one in Center and Dialog",
    ),
    Promise(
        "mcpconfig-037",
        "002",
        "Switching the transport keeps the fields of the other transport",
    ),
    Promise(
        "mcpconfig-038",
        "002",
        "After a transport switch the serialised form may hold both kinds of fields",
    ),
    Promise("mcpconfig-039", "002", "url has a meaning for the two remote transports only"),
    Promise("mcpconfig-040", "002", "to_dict serialises the config to a JSON object"),
    Promise("mcpconfig-041", "002", "Every setter returns the config, so settings can be chained"),
    # conversation (seed 003): one log as the only truth
    Promise(
        "conversation-001",
        "003",
        "The conversation log holds all messages and cards as entries in order "
        "of time and is the only source of what was said",
        "tests/conversation/test_records.py::test_entries_stand_in_the_order_they_were_written",
    ),
    Promise(
        "conversation-002",
        "003",
        "The list people see is derived from the log alone",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-003",
        "003",
        "The prompt is derived from the log alone",
        "tests/conversation/test_prompt.py::test_texts_are_taken_over_unchanged_and_in_order",
    ),
    Promise(
        "conversation-004",
        "003",
        "The prompt is built when a model is called and is never stored",
        "tests/conversation/test_prompt.py::test_texts_are_taken_over_unchanged_and_in_order",
    ),
    Promise(
        "conversation-005",
        "003",
        "A TextEntry has a role (user, assistant, system) and content",
        "tests/conversation/test_entries.py::test_a_plain_line_is_stored_as_kind_role_and_content",
    ),
    Promise(
        "conversation-006",
        "003",
        "A CardEntry has a type and a payload of YAML text",
        "tests/conversation/test_entries.py::test_a_card_is_stored_as_kind_type_and_yaml_payload",
    ),
    Promise(
        "conversation-007",
        "003",
        "An entry's place is its index in the log",
        "tests/conversation/test_records.py::test_entries_stand_in_the_order_they_were_written",
    ),
    Promise(
        "conversation-008",
        "003",
        "A new entry is always appended at the end",
        "tests/conversation/test_conversation.py::test_texts_and_cards_are_appended_at_the_end",
    ),
    Promise(
        "conversation-009",
        "003",
        "The order of entries is the order of writing",
        "tests/conversation/test_records.py::test_entries_stand_in_the_order_they_were_written",
    ),
    Promise(
        "conversation-010",
        "003",
        "Each conversation has its own log; two conversations share no entry",
        "tests/conversation/test_conversation.py::test_two_conversations_share_no_entry",
    ),
    Promise(
        "conversation-011",
        "003",
        "Conversation.entries is read-only to its callers",
        "tests/conversation/test_conversation.py::test_entries_cannot_be_changed_behind_the_log",
    ),
    Promise(
        "conversation-012",
        "003",
        "Conversation appends text entries",
        "tests/conversation/test_conversation.py::test_texts_and_cards_are_appended_at_the_end",
    ),
    Promise(
        "conversation-013",
        "003",
        "Conversation appends card entries",
        "tests/conversation/test_conversation.py::test_texts_and_cards_are_appended_at_the_end",
    ),
    Promise(
        "conversation-014",
        "003",
        "remove_last takes the newest entry off the visible list",
        "tests/conversation/test_conversation.py::test_removing_takes_entries_off_the_list_and_loses_nothing",
    ),
    Promise(
        "conversation-015",
        "003",
        "clear empties the visible list",
        "tests/conversation/test_conversation.py::test_removing_takes_entries_off_the_list_and_loses_nothing",
    ),
    Promise(
        "conversation-016",
        "003",
        "Every change of a conversation is announced to its listeners",
        "tests/conversation/test_conversation.py::test_every_change_is_told_with_what_changed",
    ),
    Promise(
        "conversation-017",
        "003",
        "Conversation itself builds no prompt; the view does",
        "tests/conversation/test_conversation.py::test_a_conversation_builds_no_view_and_stores_none",
    ),
    # conversation (seed 003): the view for people
    Promise(
        "conversation-018",
        "003",
        "screen starts from an empty list and goes through every entry in order",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-019",
        "003",
        "screen shows a text entry as text of the user or the AI with the same content",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-020",
        "003",
        "screen shows a card entry as the decoded card, authored by the AI, with its card type",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-021",
        "003",
        "screen leaves out system entries",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-022",
        "003",
        "screen marks the last message",
        "tests/conversation/test_screen.py::test_people_see_texts_and_cards_in_order_without_system_texts_and_the_last_marked",
    ),
    Promise(
        "conversation-023",
        "003",
        "Appending one item to a shown list gives the same list as building the screen again",
        "tests/conversation/test_screen.py::test_a_screen_that_grows_shows_what_a_screen_built_anew_shows",
    ),
    Promise(
        "conversation-024",
        "003",
        "A loaded conversation is shown from its log; prefixes in message text are never parsed",
        "tests/conversation/test_screen.py::test_a_prefix_in_a_text_is_only_text",
    ),
    # conversation (seed 003): the view for models
    Promise(
        "conversation-025",
        "003",
        "prompt makes a new list at every call",
        "tests/conversation/test_prompt.py::test_texts_are_taken_over_unchanged_and_in_order",
    ),
    Promise(
        "conversation-026",
        "003",
        "prompt with a system guide puts one system message with that text at its head",
        "tests/conversation/test_prompt.py::test_a_guide_is_the_one_system_message_and_stays_out_of_the_log",
    ),
    Promise(
        "conversation-027",
        "003",
        "prompt takes over user and assistant texts unchanged and in order",
        "tests/conversation/test_prompt.py::test_texts_are_taken_over_unchanged_and_in_order",
    ),
    Promise(
        "conversation-028",
        "003",
        "A stored system entry does not appear a second time when a guide is given",
        "tests/conversation/test_prompt.py::test_a_guide_is_the_one_system_message_and_stays_out_of_the_log",
    ),
    Promise(
        "conversation-029",
        "003",
        "The system message holds no summary and no large YAML",
        "tests/conversation/test_prompt.py::test_a_guide_is_the_one_system_message_and_stays_out_of_the_log",
    ),
    Promise(
        "conversation-030",
        "003",
        "The system message is the guide the caller passed; form YAML is not written into it",
        "tests/conversation/test_prompt.py::test_a_guide_is_the_one_system_message_and_stays_out_of_the_log",
    ),
    Promise(
        "conversation-031",
        "003",
        "prompt never holds a card's YAML",
        "tests/conversation/test_prompt.py::test_a_note_is_one_line_of_at_most_200_characters_and_never_yaml",
    ),
    Promise(
        "conversation-032",
        "003",
        "prompt shows a card as nothing or as one short assistant note such as [shown form: name]",
        "tests/conversation/test_prompt.py::test_a_card_is_one_short_note_in_its_own_language",
    ),
    Promise(
        "conversation-033",
        "003",
        "The guide text is not stored in the log",
        "tests/conversation/test_prompt.py::test_a_guide_is_the_one_system_message_and_stays_out_of_the_log",
    ),
    Promise("conversation-034", "003", "Asking a model without streaming sends the prompt view"),
    Promise("conversation-035", "003", "Asking a model with streaming sends the prompt view"),
    Promise(
        "conversation-036",
        "003",
        "No request body to a model contains large YAML",
    ),
    # conversation (seed 003): writing
    Promise(
        "conversation-037",
        "003",
        "A text the user sends is appended as one user TextEntry",
        "tests/conversation/test_conversation.py::test_a_question_and_its_answer_are_one_entry_each",
    ),
    Promise(
        "conversation-038",
        "003",
        "An answer is appended as one assistant TextEntry",
        "tests/conversation/test_conversation.py::test_a_question_and_its_answer_are_one_entry_each",
    ),
    Promise(
        "conversation-039",
        "003",
        "A card is encoded as YAML and appended as one CardEntry",
        "tests/conversation/test_prompt.py::test_a_mix_of_texts_and_cards_gives_the_expected_screen_and_prompt",
    ),
    Promise(
        "conversation-040",
        "003",
        "A card never leaves a prefixed assistant text in the log",
        "tests/conversation/test_prompt.py::test_a_mix_of_texts_and_cards_gives_the_expected_screen_and_prompt",
    ),
    Promise(
        "conversation-041",
        "003",
        "Showing a form card appends it to the log as well",
        "tests/conversation/test_cards.py::test_a_form_or_a_parameter_set_is_shown_by_appending_it_to_the_log",
    ),
    Promise(
        "conversation-042",
        "003",
        "Showing a parameter set card appends it to the log as well",
        "tests/conversation/test_cards.py::test_a_form_or_a_parameter_set_is_shown_by_appending_it_to_the_log",
    ),
    Promise(
        "conversation-043",
        "003",
        "Submitting a form that gives a table appends the Table card to the log",
    ),
    Promise(
        "conversation-044",
        "003",
        "Dialog writes user messages, assistant messages and cards into its conversation's log",
    ),
    Promise(
        "conversation-045",
        "003",
        "A mix of texts and cards gives the expected screen and the expected prompt",
        "tests/conversation/test_prompt.py::test_a_mix_of_texts_and_cards_gives_the_expected_screen_and_prompt",
    ),
    Promise(
        "conversation-046",
        "003",
        "The conversation list and an opened conversation agree",
        "tests/conversation/test_store.py::test_the_list_and_an_opened_conversation_agree",
    ),
    # cards (seed 003): payloads
    Promise(
        "cards-001",
        "003",
        "Every card payload has a type",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-002",
        "003",
        "A card payload may have an id, unique to that card",
        "tests/conversation/test_cards.py::test_a_card_may_have_an_id",
    ),
    Promise(
        "cards-003",
        "003",
        "Card type Form is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-004",
        "003",
        "Card type ParameterSet is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-005",
        "003",
        "Card type Table is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-006",
        "003",
        "Card type ColumnMatch is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-007",
        "003",
        "Card type WorkflowStatus is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-008",
        "003",
        "Card type KnowledgeBase is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-009",
        "003",
        "Card type XyzLoadCard is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-010",
        "003",
        "Card type GriddingParamCard is known",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-011",
        "003",
        "A card's payload is YAML readable by people and models",
        "tests/conversation/test_document.py::test_the_file_is_yaml_with_the_fields_of_the_seed_and_readable_cards",
    ),
    Promise(
        "cards-012",
        "003",
        "All card fields can be written as YAML",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-013",
        "003",
        "Long text in a card may be cut",
        "tests/conversation/test_card_types.py::test_a_preview_cuts_rows_and_long_texts",
    ),
    Promise(
        "cards-014",
        "003",
        "One codec encodes and decodes all card types",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-015",
        "003",
        "The card codec handles payloads only and knows nothing of storage",
        "tests/conversation/test_cards.py::test_the_codec_takes_type_yaml_and_a_form_registry_and_nothing_of_storage",
    ),
    # cards (seed 003): fields of each type
    Promise(
        "cards-016",
        "003",
        "A Form payload has formId, title, status, fields and submitLabel",
        "tests/conversation/test_card_types.py::test_a_form_payload_has_the_seeds_fields",
    ),
    Promise(
        "cards-017",
        "003",
        "A Form's fields have id, label, type and currentValue",
        "tests/conversation/test_card_types.py::test_a_form_payload_has_the_seeds_fields",
    ),
    Promise(
        "cards-018",
        "003",
        "A Form card converts to a form request (definition and filled fields) and back",
        "tests/conversation/test_forms.py::test_a_form_card_is_a_request_with_definition_and_answers_and_back",
    ),
    Promise(
        "cards-019",
        "003",
        "A Form is restored with the definition FormRegistry holds for its formId",
        "tests/conversation/test_screen.py::test_a_form_is_shown_as_its_definition_asks_it_today_and_locked_when_that_is_gone",
    ),
    Promise(
        "cards-020",
        "003",
        "A ParameterSet payload has title and items",
        "tests/conversation/test_card_types.py::test_a_parameter_set_payload_has_the_seeds_fields",
    ),
    Promise(
        "cards-021",
        "003",
        "A ParameterSet's items have name, valueText, description, fieldType and options",
        "tests/conversation/test_card_types.py::test_a_parameter_set_payload_has_the_seeds_fields",
    ),
    Promise(
        "cards-022",
        "003",
        "A ParameterSet loads from JSON and from YAML alike",
        "tests/conversation/test_card_types.py::test_a_parameter_set_loads_from_json_and_yaml_alike",
    ),
    Promise(
        "cards-023",
        "003",
        "A Table payload has title, columnNames and rows",
        "tests/conversation/test_card_types.py::test_a_table_payload_keeps_a_part_of_its_rows_and_says_how_many_there_are",
    ),
    Promise(
        "cards-024",
        "003",
        "A Table payload may give totalRowCount and maxPreviewRows with a part of the rows",
        "tests/conversation/test_card_types.py::test_a_table_payload_keeps_a_part_of_its_rows_and_says_how_many_there_are",
    ),
    Promise(
        "cards-025",
        "003",
        "A ColumnMatch payload has title, requiredColumns, previewColumns and mappings",
        "tests/conversation/test_card_types.py::test_a_column_match_payload_pairs_required_with_matched_columns",
    ),
    Promise(
        "cards-026",
        "003",
        "A ColumnMatch's mappings pair requiredColumn with matchedColumn",
        "tests/conversation/test_card_types.py::test_a_column_match_payload_pairs_required_with_matched_columns",
    ),
    Promise(
        "cards-027",
        "003",
        "A WorkflowStatus payload has title and steps",
        "tests/conversation/test_card_types.py::test_a_workflow_payload_has_steps_with_name_order_and_status",
    ),
    Promise(
        "cards-028",
        "003",
        "A WorkflowStatus's steps have id, displayName, order and status",
        "tests/conversation/test_card_types.py::test_a_workflow_payload_has_steps_with_name_order_and_status",
    ),
    # cards (seed 003): round trip and failures
    Promise(
        "cards-029",
        "003",
        "A card encoded to YAML and decoded by its type is the same card",
        "tests/conversation/test_card_types.py::test_every_type_survives_its_yaml",
    ),
    Promise(
        "cards-030",
        "003",
        "Decoding takes type, YAML and, for forms, a FormRegistry",
        "tests/conversation/test_cards.py::test_the_codec_takes_type_yaml_and_a_form_registry_and_nothing_of_storage",
    ),
    Promise(
        "cards-031",
        "003",
        "A Form without formId decodes to a placeholder",
        "tests/conversation/test_forms.py::test_a_form_without_a_form_id_is_a_placeholder_unless_it_brings_its_own_definition",
    ),
    Promise(
        "cards-032",
        "003",
        "A Form whose formId FormRegistry does not know shows as placeholder or read-only text",
        "tests/conversation/test_screen.py::test_a_form_is_shown_as_its_definition_asks_it_today_and_locked_when_that_is_gone",
    ),
    Promise(
        "cards-033",
        "003",
        "A card with an invalid payload shows as placeholder text or is left out, and is logged",
        "tests/conversation/test_screen.py::test_a_card_nobody_can_read_is_a_placeholder_and_one_line_in_the_log",
    ),
    Promise(
        "cards-034",
        "003",
        "A card of unknown type shows as placeholder text or is left out, and is logged",
        "tests/conversation/test_screen.py::test_a_card_nobody_can_read_is_a_placeholder_and_one_line_in_the_log",
    ),
    Promise(
        "cards-035",
        "003",
        "Each card gives a short note for the prompt",
        "tests/conversation/test_prompt.py::test_a_card_is_one_short_note_in_its_own_language",
    ),
    # storage (seed 003): persistence
    Promise(
        "storage-001",
        "003",
        "YamlConversationStore saves each conversation as {id}.yaml in its sessions folder",
    ),
    Promise(
        "storage-002",
        "003",
        "The file holds sessionId, title, createdAt, updatedAt, workflowMode and entries",
        "tests/conversation/test_document.py::test_the_file_is_yaml_with_the_fields_of_the_seed_and_readable_cards",
    ),
    Promise(
        "storage-003",
        "003",
        "A text entry is stored as {kind: Text, role, content}",
        "tests/conversation/test_entries.py::test_a_plain_line_is_stored_as_kind_role_and_content",
    ),
    Promise(
        "storage-004",
        "003",
        "A card entry is stored as {kind: Special, type, payload}",
        "tests/conversation/test_entries.py::test_a_card_is_stored_as_kind_type_and_yaml_payload",
    ),
    Promise(
        "storage-005",
        "003",
        "A stored payload is a YAML string",
        "tests/conversation/test_entries.py::test_a_card_is_stored_as_kind_type_and_yaml_payload",
    ),
    Promise(
        "storage-006",
        "003",
        "The whole file is YAML, as the card payloads are",
        "tests/conversation/test_document.py::test_the_file_is_yaml_with_the_fields_of_the_seed_and_readable_cards",
    ),
    Promise(
        "storage-007",
        "003",
        "A conversation's log can be stored as JSON as well as YAML",
        "tests/conversation/test_document.py::test_a_conversation_survives_yaml_and_json_and_other_readers",
    ),
    Promise(
        "storage-008",
        "003",
        "The stored entries come from the conversation's log",
        "tests/conversation/test_document.py::test_the_file_is_yaml_with_the_fields_of_the_seed_and_readable_cards",
    ),
    Promise(
        "storage-009",
        "003",
        "Loading restores the log from the file's entries",
        "tests/conversation/test_document.py::test_a_file_of_the_seeds_product_opens_as_a_live_conversation",
    ),
    Promise(
        "storage-010",
        "003",
        "A loaded conversation is a live one again with its restored log",
        "tests/conversation/test_document.py::test_a_file_of_the_seeds_product_opens_as_a_live_conversation",
    ),
    Promise(
        "storage-011",
        "003",
        "Entries survive the mapping to their stored form and back",
        "tests/conversation/test_entries.py::test_every_entry_survives_its_stored_forms",
    ),
    Promise(
        "storage-012",
        "003",
        "A conversation survives to_yaml and loading that YAML",
        "tests/conversation/test_document.py::test_a_conversation_survives_yaml_and_json_and_other_readers",
    ),
    Promise(
        "storage-013",
        "003",
        "A conversation can be filled from a list of stored entries",
        "tests/conversation/test_conversation.py::test_stored_entries_fill_a_conversation_in_place_of_what_it_showed",
    ),
    Promise(
        "storage-014",
        "003",
        "After switching conversations and loading again, cards and order are right",
        "tests/conversation/test_document.py::test_after_switching_and_loading_again_cards_and_order_are_right",
    ),
    Promise(
        "storage-015",
        "003",
        "Prompt views are not stored",
        "tests/conversation/test_conversation.py::test_a_conversation_builds_no_view_and_stores_none",
    ),
    # docs (seed 004): config file
    Promise(
        "docs-001",
        "004",
        "The config file's provider chooses openai or anthropic for every command that reads it",
    ),
    Promise("docs-002", "004", "base_url, api_key and model of the config file reach the provider"),
    Promise(
        "docs-003",
        "004",
        "The config file's anthropic_version goes out as the version header",
    ),
    Promise(
        "docs-004",
        "004",
        "embedding_model, embedding_base_url and embedding_api_key set up the embedder",
    ),
    Promise(
        "docs-005",
        "004",
        "temperature, max_tokens and json_mode of the config file go into the model calls",
    ),
    Promise(
        "docs-006",
        "004",
        "connect_timeout_ms and total_timeout_ms of the config file bound its HTTP calls",
    ),
    Promise(
        "docs-007",
        "004",
        "retries and retry_backoff_ms of the config file set the provider's retries",
    ),
    Promise("docs-008", "004", "A config file with wrong values is refused by validation"),
    Promise("docs-009", "004", "Fields the config file leaves out get their defaults"),
    Promise(
        "docs-010",
        "004",
        "Anthropic with embedding_model but no embedding_base_url and "
        "embedding_api_key falls back to HashEmbedder with a warning",
    ),
    Promise(
        "docs-011",
        "004",
        "Anthropic with an OpenAI-compatible embedding_base_url and embedding_api_key embeds there",
    ),
    # docs (seed 004): replaceable interfaces
    Promise(
        "docs-012",
        "004",
        "CheckpointStore is replaceable; an in-memory and a JSONL file store are built in",
    ),
    Promise(
        "docs-013",
        "004",
        "Observer is replaceable; logging, JSON trace and metrics observers are built in",
    ),
    Promise(
        "docs-014",
        "004",
        "Provider is replaceable; OpenAIProvider, AnthropicProvider and MockProvider are built in",
    ),
    Promise(
        "docs-015",
        "004",
        "HttpTransport is replaceable; no HTTP library is imported until a request is made",
    ),
    Promise(
        "docs-016",
        "004",
        "DocumentLoader is replaceable; text, directory, PDF, HTML, DOCX and URL are built in",
    ),
    Promise(
        "docs-017",
        "004",
        "Embedder is replaceable; HashEmbedder and OpenAIEmbedder are built in",
    ),
    Promise("docs-018", "004", "Chunker is replaceable; SlidingWindowChunker is built in"),
    Promise("docs-019", "004", "VectorStore is replaceable; InMemoryVectorStore is built in"),
    Promise("docs-020", "004", "Reranker is replaceable; MMRReranker is built in"),
    Promise(
        "docs-021",
        "004",
        "The MCP transport is replaceable; stdio, streamable HTTP and in-memory are built in",
    ),
    # docs (seed 004): packaging, documents, examples
    Promise(
        "docs-022",
        "004",
        "The graph core works without any HTTP or provider package installed",
    ),
    Promise(
        "docs-023",
        "004",
        "Missing optional packages for PDF and DOCX skip their tests and no others",
    ),
    Promise(
        "docs-024",
        "004",
        "The built distribution installs into a fresh environment and a "
        "small consumer project runs against it",
    ),
    Promise("docs-025", "004", "The distribution contains the MIT licence text"),
    Promise(
        "docs-026",
        "004",
        "A development guide covers set-up, build and tests, execution model, "
        "extension points, concurrency, errors, CI and release",
    ),
    Promise(
        "docs-027",
        "004",
        "An integration guide covers installing, a smallest consumer, graph, "
        "agent and RAG use, config and keys, deployment",
    ),
    Promise("docs-028", "004", "An API overview lists the public types with short snippets"),
    Promise("docs-029", "004", "A change log records versions and compatibility"),
    Promise(
        "docs-030",
        "004",
        "Runnable examples show a graph, a ReAct agent, RAG, a live provider check, "
        "ticket triage, a vector bench and the RAG service",
    ),
    Promise(
        "docs-031",
        "004",
        "Offline triage, offline RAG service and read-only service with token run as smoke tests",
    ),
    Promise(
        "docs-032",
        "004",
        "An example with a user's own approximate VectorStore runs offline as a smoke test",
    ),
    # docs (seed 004): performance baseline
    Promise(
        "docs-033",
        "004",
        "The bench shows top-10 search of 50,000 x 128 vectors within the baseline of 10 to 14 ms",
    ),
    Promise(
        "docs-034",
        "004",
        "The bench shows 50,000 x 128 vectors stored within the baseline of 30 "
        "to 38 ms (1.3 to 1.6 million chunks a second)",
    ),
    Promise(
        "docs-035",
        "004",
        "The bench shows HashEmbedder at 1024 dimensions reaching the baseline of 100 to 130 MB/s",
    ),
    Promise("docs-036", "004", "Search uses cached norms and a top-k selection, not a full sort"),
    Promise("docs-037", "004", "The built-in store saves index and IndexManifest as one JSON file"),
    Promise(
        "docs-038",
        "004",
        "The vector bench has a persist row with measured save and reload times of this machine",
    ),
)
