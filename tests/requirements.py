"""The register: what Dragoman must do, and the tests that show it.

A test says which requirements it shows with `@pytest.mark.requirement("TRN-1")`; the register names the same
test under the same id. `tests/unit/test_requirements_register.py` holds the two together, so neither can
claim what the other does not know. No tests means: not met. `python -m tests.requirements` prints the state.
"""

from dataclasses import dataclass

CHAPTERS = {
    "CFG": "Configuration",
    "TRN": "Transports",
    "LIF": "Lifecycle",
    "CAT": "Catalogue",
    "CAL": "Calls",
    "PRM": "Permission and hooks",
    "AUT": "Sign-in",
    "ASK": "What servers may ask",
    "AGT": "The agent",
    "CLI": "Command line",
    "GWY": "Gateway",
    "LIB": "Library",
}


@dataclass(frozen=True)
class Requirement:
    id: str
    title: str
    tests: tuple[str, ...]
    """Node ids without parameters: `tests/unit/test_x.py::test_y`, `…::TestZ::test_y`."""
    beyond: bool
    """Goes beyond the sources the requirements were drawn from: `(+)`."""

    @property
    def is_met(self) -> bool:
        return bool(self.tests)


def _row(id: str, title: str, *tests: str, beyond: bool = False) -> tuple[str, Requirement]:
    return id, Requirement(id, title, tests, beyond)


REQUIREMENTS: dict[str, Requirement] = dict(
    [
        # --- Configuration ---
        _row("CFG-1", "seven scopes, the higher replaces; every server knows its file and scope"),
        _row("CFG-2", "the files, where they are looked for, and the two variables that move them"),
        _row("CFG-3", "enterprise is exclusive"),
        _row(
            "CFG-4",
            "${VAR} and ${VAR:-default} expand in every string; a missing one fails that server alone",
            "tests/integration/test_many_servers.py::test_a_missing_variable_is_an_error_of_its_own_server_alone",
            "tests/unit/config/test_expand.py::test_a_missing_variable_is_named_with_server_and_field_and_no_value_is_told",
            "tests/unit/config/test_expand.py::test_every_string_field_is_expanded_at_any_depth_and_keys_are_not",
            "tests/unit/config/test_expand.py::test_what_is_written_and_what_is_meant",
        ),
        _row("CFG-5", "server types and fields; unknown fields are kept and warned about"),
        _row("CFG-6", "duplicates by signature are dropped and reported"),
        _row("CFG-7", "allow and deny policy by name, URL and command; deny wins, in every scope"),
        _row("CFG-8", "project servers need approval, bound to a fingerprint of the entry"),
        _row("CFG-9", "one table of settings, from environment, files and managed settings"),
        _row("CFG-10", "writes are atomic and keep what they do not understand; broken files are named"),
        _row("CFG-11", "configuration is live", beyond=True),
        _row("CFG-12", "import from and export to other hosts", beyond=True),
        _row("CFG-13", "agents' own servers: by name, inline, required"),
        # --- Transports ---
        _row(
            "TRN-1",
            "stdio: own group, minimal environment, stderr ring, gone within 600 ms, no orphan",
            "tests/integration/test_sdk_lessons.py::test_finding_12_pid_exit_code_and_stderr_are_there_for_whoever_asks",
            "tests/integration/test_sdk_lessons.py::test_finding_15_shutdown_reaches_the_children_of_a_server_that_ends_by_itself",
            "tests/torture/test_t11_start_and_death.py::test_t11_a_server_that_dies_while_connecting_leaves_its_last_words",
            "tests/torture/test_t13_will_not_die.py::test_t13_a_server_that_ignores_every_polite_request_is_killed",
            "tests/torture/test_t14_wrappers.py::test_t14_a_servers_child_does_not_outlive_it",
            "tests/torture/test_t15_host_dies.py::test_t15_if_the_warden_is_killed_too_the_next_host_sweeps",
            "tests/torture/test_t15_host_dies.py::test_t15_no_server_survives_a_host_that_dies_by_a_signal",
            "tests/torture/test_t16_stderr_flood.py::test_t16_memory_stays_bounded_over_a_longer_flood",
            "tests/unit/transports/test_process.py::test_only_what_a_program_cannot_do_without_is_inherited",
            "tests/unit/transports/test_process.py::test_the_entrys_own_variables_come_on_top_and_win",
            "tests/unit/transports/test_process.py::test_the_ladder_ends_within_600_ms",
        ),
        _row("TRN-2", "streamable HTTP, every revision"),
        _row("TRN-3", "HTTP+SSE of 2024-11-05"),
        _row("TRN-4", "WebSocket with headers, proxy, TLS and client certificates"),
        _row(
            "TRN-5",
            "in-process: a linked pair; takes SDK and FastMCP server objects",
            "tests/integration/test_inprocess.py::test_built_in_sdk_and_fastmcp_objects_serve",
            "tests/integration/test_inprocess.py::test_closing_the_hosts_end_closes_the_servers_and_nothing_is_delivered_after",
            "tests/integration/test_inprocess.py::test_closing_the_servers_end_closes_the_hosts",
            "tests/integration/test_inprocess.py::test_messages_arrive_on_the_next_turn_of_the_loop_and_in_order",
        ),
        _row("TRN-6", "sdk: JSON-RPC inside an embedding program's control messages"),
        _row("TRN-7", "sse-ide and ws-ide through lockfiles, with an allow-list of tools"),
        _row("TRN-8", "claudeai-proxy with the user's bearer"),
        _row(
            "TRN-9", "each HTTP request has 60 s, streams have no limit; size limits end with a named error"
        ),
        _row("TRN-10", "revision negotiation is automatic, remembered, and can be pinned"),
        # --- Lifecycle ---
        _row("LIF-1", "states with reasons and phases; every change is an event; one pure transition table"),
        _row("LIF-2", "start-up order; one slow or broken server never delays another"),
        _row("LIF-3", "connecting has 30 s, then a cause a person can act on"),
        _row("LIF-4", "one live connection per server; concurrent callers share one connect"),
        _row("LIF-5", "a lost connection reconnects with backoff; calls wait meanwhile"),
        _row("LIF-6", "three terminal errors in a row reconnect; refused at once"),
        _row("LIF-7", "a lost session re-connects and retries the call once"),
        _row("LIF-8", "list changes refresh that list alone; bursts are merged"),
        _row("LIF-9", "enable, disable, reconnect while running; disabling is remembered"),
        _row(
            "LIF-10",
            "shutdown is parallel and bounded; nothing hangs",
            "tests/torture/test_t13_will_not_die.py::test_t13_closing_does_not_wait_for_servers_that_are_still_connecting",
            "tests/torture/test_t13_will_not_die.py::test_t13_ten_stubborn_servers_end_together_in_the_time_of_one",
            "tests/torture/test_t66_close_in_any_order.py::test_t66_a_call_in_flight_ends_when_the_host_closes",
            "tests/torture/test_t66_close_in_any_order.py::test_t66_three_hosts_close_in_any_order_from_other_tasks",
        ),
        _row("LIF-11", "lazy stdio servers", beyond=True),
        # --- Catalogue ---
        _row("CAT-1", "names mcp__server__tool: cleaned, at most 64 characters, never shared"),
        _row("CAT-2", "text from servers is cleaned of invisible and control characters"),
        _row("CAT-3", "descriptions and instructions are cut at 2 048 characters, visibly"),
        _row("CAT-4", "annotations and their defaults"),
        _row("CAT-5", "tools/list is paged, bounded and cached"),
        _row("CAT-6", "one pool of built-in and MCP tools, in a stable order"),
        _row("CAT-7", "deferred tools and tool_search"),
        _row("CAT-8", "server instructions in the system prompt; delta mode"),
        _row("CAT-9", "resources: listed, read, subscribed, mentioned"),
        _row("CAT-10", "prompts are slash commands"),
        _row("CAT-11", "rug pulls are marked and asked again", beyond=True),
        # --- Calls ---
        _row("CAL-1", "one visible pipeline for built-in and MCP tools"),
        _row("CAL-2", "time limits; cancelling tells the server and returns at once"),
        _row(
            "CAL-3",
            "progress reaches the caller",
            "tests/e2e/test_demo.py::test_in_a_terminal_there_is_colour_a_progress_bar_and_a_picture",
            "tests/integration/test_one_server.py::test_progress_reaches_the_caller_and_the_events",
            "tests/unit/calls/test_pipeline.py::test_listeners_hear_of_start_progress_and_end",
            "tests/unit/calls/test_pipeline.py::test_the_caller_hears_of_progress_without_any_listener",
        ),
        _row("CAL-4", "read-only tools of one turn run in parallel, others in order"),
        _row("CAL-5", "errors by kind: a table of what to do"),
        _row(
            "CAL-6",
            "isError is an outcome; the host never crashes because of a server",
            "tests/integration/test_one_server.py::test_a_tool_that_fails_is_an_outcome_and_the_next_call_works",
            "tests/integration/test_sdk_lessons.py::test_finding_18_a_result_without_the_promised_structure_is_kept",
            "tests/integration/test_sdk_lessons.py::test_finding_19_an_unknown_kind_of_content_costs_nothing_else",
            "tests/torture/test_t02_unparseable_replies.py::test_t02_a_reply_that_cannot_be_parsed_fails_that_call_alone",
            "tests/torture/test_t11_start_and_death.py::test_t11_a_server_that_dies_during_a_call_fails_it_at_once",
        ),
        _row("CAL-7", "results of every kind; too large ones are saved and described"),
        _row("CAL-8", "tasks look like ordinary calls and survive a restart", beyond=True),
        # --- Permission and hooks ---
        _row("PRM-1", "allow, ask and deny rules in every scope"),
        _row("PRM-2", "permission modes"),
        _row("PRM-3", "without a rule, MCP tools are asked; the question and its answers"),
        _row("PRM-4", "the shell tool takes commands apart"),
        _row("PRM-5", "hooks as commands, HTTP calls and Python functions"),
        _row("PRM-6", "every decision can be explained; an audit log", beyond=True),
        # --- Sign-in ---
        _row("AUT-1", "OAuth 2.1 for sse and http"),
        _row("AUT-2", "tokens in the keychain, or in a file, said aloud"),
        _row("AUT-3", "refresh: early, on 401, one in flight across processes"),
        _row("AUT-4", "step-up on insufficient_scope"),
        _row("AUT-5", "sign-out revokes and forgets"),
        _row("AUT-6", "needs-auth is remembered 15 minutes"),
        _row("AUT-7", "the pseudo-tool authenticate"),
        _row("AUT-8", "XAA: one browser visit serves many servers"),
        _row("AUT-9", "headersHelper"),
        _row("AUT-10", "client credentials; device or paste-the-code flow", beyond=True),
        _row("AUT-11", "nothing secret in logs, errors, reprs, transcripts, process listings"),
        # --- What servers may ask ---
        _row("ASK-1", "elicitation, form mode"),
        _row("ASK-2", "elicitation, URL mode"),
        _row("ASK-3", "hooks answer before a person; one question at a time"),
        _row("ASK-4", "sampling"),
        _row("ASK-5", "roots"),
        _row("ASK-6", "logging"),
        # --- The agent ---
        _row("AGT-1", "conversation, and one-shot with -p"),
        _row("AGT-2", "any model provider; without a key a clear sentence"),
        _row("AGT-3", "built-in tools"),
        _row("AGT-4", "slash commands"),
        _row("AGT-5", "transcripts are kept and can be resumed"),
        # --- Command line ---
        _row("CLI-1", "dragoman mcp add and its family"),
        _row("CLI-2", "tools, call, resources, prompts, logs, doctor …; --json, stable exit codes"),
        _row(
            "CLI-3",
            "a first command that works with no configuration, no key and no network",
            "tests/e2e/test_demo.py::test_the_tour_needs_no_configuration_no_key_and_no_network",
        ),
        _row("CLI-4", "doctor says what is wrong and what to do", beyond=True),
        # --- Gateway ---
        _row("GWY-1", "dragoman serve: the whole catalogue as one MCP server"),
        _row("GWY-2", "elicitation, sampling, roots, progress, logging, cancellation pass through"),
        _row("GWY-3", "sign-in for callers; no token is passed through"),
        _row("GWY-4", "more than one machine", beyond=True),
        _row("GWY-5", "a web console", beyond=True),
        _row("GWY-6", "response caching"),
        # --- Library ---
        _row(
            "LIB-1",
            "Host: tools, call, events, servers; typed, quick to import",
            "tests/integration/test_public_face.py::test_a_host_lists_calls_tells_events_and_shows_servers",
            "tests/integration/test_public_face.py::test_about_thirty_public_names_typed_and_documented",
            "tests/integration/test_public_face.py::test_importing_does_nothing",
            "tests/unit/test_public.py::test_the_package_lists_what_it_hands_out",
            "tests/unit/test_public.py::test_the_public_words",
        ),
        _row("LIB-2", "tools in the shape agents want"),
        _row("LIB-3", "seams, and test helpers in dragoman.testing"),
        _row("LIB-4", "OpenTelemetry spans; trace context passed on"),
    ]
)


def main() -> None:
    for prefix, chapter in CHAPTERS.items():
        rows = [row for row in REQUIREMENTS.values() if row.id.startswith(f"{prefix}-")]
        print(f"\n{chapter}: {sum(row.is_met for row in rows)} of {len(rows)}")
        for row in rows:
            state = f"{len(row.tests):>3} tests" if row.is_met else "        –"
            print(f"  {row.id:<7}{state}  {row.title}{' (+)' if row.beyond else ''}")
    met = sum(row.is_met for row in REQUIREMENTS.values())
    print(f"\n{met} of {len(REQUIREMENTS)} have tests that show them")


if __name__ == "__main__":
    main()
