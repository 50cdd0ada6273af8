"""The suite is the same wherever it is begun."""

from conftest import own_environment


def test_settings_proxies_and_looks_of_who_runs_the_suite_are_not_its_own() -> None:
    theirs = {
        "OPENAI_API_KEY": "sk-theirs", "DIALOOM_MODEL": "theirs", "https_proxy": "http://proxy:3128",
        "ALL_PROXY": "socks5://proxy", "NO_COLOR": "1", "LC_ALL": "de_DE.UTF-8", "COLUMNS": "40",
    }  # fmt: skip
    environment = theirs | {
        "PATH": "/bin",
        "DIALOOM_SHARED": "/shared",
        "XDG_CONFIG_HOME": "/home/they/.config",
    }
    own_environment(environment)
    assert environment.pop("XDG_CONFIG_HOME").endswith("tests/no-settings")
    assert environment == {"PATH": "/bin", "DIALOOM_SHARED": "/shared", "COLUMNS": "80", "LINES": "24"}
